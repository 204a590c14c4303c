"""Finds a period in step times that noise alone would hardly make.

Two tests share the false-alarm rate. The line test looks for a sharp spectral line over its own
neighbourhood, so noise of any smooth colour passes. The fold test looks for rare slow steps that
keep to one beat, which a spectrum spreads over too many harmonics to see.
Legend: n steps in the window, period in steps, frequency in cycles a step.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST_STEPS = 32
FEWEST_CYCLES = 4
# A Hann window spreads a line over two bins on each side; the background starts beyond them.
LINE_GAP = 3
BACKGROUND_BINS = 24
# Power in neighbouring Hann bins is correlated (4/9 and 1/36), so bins count for about half.
HANN_REDUNDANCY = 1.94
# How far above the middle, in robust standard deviations, a step counts as slow.
SLOW_LEVELS = (3.0, 6.0, 12.0)


@dataclass(frozen=True)
class Period:
    """A beat in step times; `cost` is the share of time that its slow phases add."""

    steps: float
    cost: float
    log_p: float


def find_period(seconds: Floats, alpha: float) -> Period | None:
    """Finds the fundamental period; without one, chance returns something with rate `alpha`."""
    seconds = np.asarray(seconds, np.float64)
    if len(seconds) < FEWEST_STEPS or not np.isfinite(seconds).all() or seconds.mean() <= 0:
        return None
    # Durations vary by factors: their logarithm tames the long tail of slow steps.
    level = _without_trend(np.log(np.maximum(seconds, 1e-3 * seconds.mean())))
    centre, spread = _centre_and_spread(level)
    if spread == 0:
        return None
    beat = _fold(seconds, (level - centre) / spread, alpha / 2)
    line = _line(seconds, np.clip((level - centre) / spread, -3, 3), alpha / 2)
    if beat is None or line is None:
        return beat or line
    # A train of rare slow steps has twice its cost in every harmonic.
    harmonic = _is_multiple(1 / line.steps, 1 / beat.steps, len(seconds))
    heard_twice = harmonic and line.cost < 2.5 * beat.cost
    return beat if heard_twice or beat.cost > line.cost else line


def _without_trend(level: Floats) -> Floats:
    time = np.linspace(-1, 1, len(level))
    slope = float(time @ level / (time @ time))
    return np.asarray(level - slope * time)


def _centre_and_spread(level: Floats) -> tuple[float, float]:
    centre = float(np.median(level))
    spread = 1.4826 * float(np.median(np.abs(level - centre)))
    # Timers tick: a window of equal steps still has a spread, or every hiccup would be infinite.
    return centre, max(spread, 0.01) if np.ptp(level) > 1e-9 else 0.0


def _fold(seconds: Floats, scores: Floats, alpha: float) -> Period | None:
    """Tests whether slow steps share one phase of a whole-numbered period."""
    n = len(scores)
    periods = np.arange(2, n // FEWEST_CYCLES + 1)
    # Every phase of every period at every level is one look (Bonferroni).
    log_looks = np.log(len(SLOW_LEVELS) * periods.sum())
    log_p, steps, level = min((*_best_fold(scores > each, periods), each) for each in SLOW_LEVELS)
    if log_p + log_looks > np.log(alpha):
        return None
    cycles = _cycles(seconds, steps)
    slow_phases = _cycles(scores > level, steps).mean(axis=0) > 0.5
    extra = np.maximum(cycles[:, slow_phases] - np.median(seconds), 0)
    return Period(steps, float(extra.sum() / cycles.sum()), float(log_p + log_looks))


def _cycles(values: NDArray[Any], steps: int) -> NDArray[Any]:
    """Cuts the window into rows of one period each; the oldest steps that fill none are left."""
    return values[len(values) % steps :].reshape(-1, steps)


def _best_fold(slow: NDArray[np.bool_], periods: NDArray[np.int_]) -> tuple[float, int]:
    """Gives the log probability and the period of the least likely gathering of slow steps."""
    best = (0.0, int(periods[0]))
    if (total := np.count_nonzero(slow)) < FEWEST_CYCLES:
        return best
    for steps in periods.tolist():
        hits = int(_cycles(slow, steps).sum(axis=0).max())
        best = min(best, (_log_tail(hits, len(slow) // steps, total / len(slow)), steps))
    return best


def _log_tail(hits: int, slots: int, share: float) -> float:
    """Bounds the log chance of `hits` or more in `slots` draws, with or without replacement.

    Hoeffding 1963, theorems 1 and 4: never too small, whatever the step times' distribution.
    """
    rate = hits / slots
    if rate <= share or share <= 0:
        return 0.0
    missed = 0.0 if rate == 1 else (1 - rate) * np.log((1 - rate) / (1 - share))
    return float(-slots * (rate * np.log(rate / share) + missed))


def _line(seconds: Floats, level: Floats, alpha: float) -> Period | None:
    """Tests every spectral bin against the bins around it."""
    n = len(level)
    power = _spectrum(_whitened(level))
    log_p = _line_log_p(power) + np.log(len(power))
    log_p[:FEWEST_CYCLES] = 0
    best = int(log_p.argmin())
    if log_p[best] > np.log(alpha):
        return None
    # Company for a proven line needs less proof than the line itself.
    peaks = np.flatnonzero((log_p < np.log(1e-3)) & _is_peak(power))
    frequencies = [_refine(power, int(k)) / n for k in peaks]
    frequency = _fundamental(_refine(power, best) / n, frequencies, n)
    swing = _amplitude(seconds, _refine(power, best) / n)
    return Period(1 / frequency, swing / float(seconds.mean()), float(log_p[best]))


def _whitened(level: Floats) -> Floats:
    """Takes out AR(1) colour, which would tilt the background of the lowest bins."""
    level = level - level.mean()
    memory = float(level[1:] @ level[:-1] / (level @ level))
    # Alternation looks like noise of memory -1; taking all of that out would hide it.
    memory = min(max(memory, -0.8), 0.95)
    return np.asarray(level[1:] - memory * level[:-1])


def _spectrum(level: Floats) -> Floats:
    # Padded by the sample that whitening took, so that bins stay multiples of 1/n.
    return np.asarray(np.abs(np.fft.rfft(level * np.hanning(len(level)), len(level) + 1)) ** 2)


def _line_log_p(power: Floats) -> Floats:
    bins = len(power)
    side = min(BACKGROUND_BINS, bins // 2 - LINE_GAP - 2)
    mean = np.convolve(power, np.full(side, 1 / side), "valid")
    k = np.arange(bins)
    below, above = k - LINE_GAP - side, k + LINE_GAP + 1
    left = np.where(below >= 1, mean[np.clip(below, 0, len(mean) - 1)], 0)
    right = np.where(above < len(mean), mean[np.clip(above, 0, len(mean) - 1)], 0)
    ratio = power / np.maximum(np.maximum(left, right), 1e-12 * power.max() + 1e-300)
    # The last bins are real, not complex: one degree of freedom, tails half as steep.
    ratio[-2:] /= 2
    freedom = 2 * side / HANN_REDUNDANCY
    return np.asarray(-freedom / 2 * np.log1p(2 * ratio / freedom))


def _is_peak(power: Floats) -> NDArray[np.bool_]:
    padded = np.pad(power, 1)
    return np.asarray((power >= padded[:-2]) & (power >= padded[2:]))


def _refine(power: Floats, k: int) -> float:
    """Places a peak between bins by a parabola through its logarithm."""
    if k in (0, len(power) - 1):
        return float(k)
    left, middle, right = np.log(power[k - 1 : k + 2] + 1e-300)
    bend = left - 2 * middle + right
    return k + float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend < 0 else float(k)


def _fundamental(strongest: float, lines: list[float], n: int) -> float:
    """Finds the highest frequency of which all lines are multiples; else the strongest line's."""
    for divisor in range(1, 17):
        base = strongest / divisor
        if base < FEWEST_CYCLES / n:
            break
        if all(_is_multiple(line, base, n) for line in lines):
            return base
    return strongest


def _is_multiple(frequency: float, base: float, n: int) -> bool:
    """Says whether a harmonic of `base`, folded at the Nyquist frequency, is within a bin."""
    harmonics = base * np.arange(1, max(8, int(0.5 / base) + 2))
    folded = np.abs(harmonics - np.round(harmonics))
    return bool((np.abs(folded - frequency) < 0.7 / n).any())


def _amplitude(seconds: Floats, frequency: float) -> float:
    n = len(seconds)
    window = np.hanning(n)
    turn = np.exp(-2j * np.pi * frequency * np.arange(n))
    swing = abs(np.sum(window * (seconds - seconds.mean()) * turn)) / window.sum()
    return float(swing if frequency > 0.5 - 1 / n else 2 * swing)
