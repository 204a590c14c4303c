"""Tells a leak from noise, sawteeth, a one-time step and a warm-up that levels off.

Legend: n samples in the window, one a step; rates in bytes a step.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST_STEPS = 160
BLOCKS = 20
# A slope that falls with no more chance than this is a warm-up; one leak in twenty waits a look.
SLOWING = 0.05


@dataclass(frozen=True)
class Growth:
    """A steady rise of memory over the whole window."""

    bytes_per_step: float
    p: float


def find_growth(used: Floats, alpha: float) -> Growth | None:
    """Finds a leak; without one, chance returns something with a rate of at most `alpha`."""
    used = np.asarray(used, np.float64)
    if not np.isfinite(used).all():
        return None
    # The newer half has forgotten a warm-up that the whole still sees.
    return _growth(used, alpha / 2) or _growth(used[len(used) // 2 :], alpha / 2)


def _growth(used: Floats, alpha: float) -> Growth | None:
    if len(used) < FEWEST_STEPS:
        return None
    length = len(used) // BLOCKS
    # Blocks make 100,000 samples as cheap as a hundred; the mean of each block's middle half
    # forgets outliers.
    blocks = np.sort(used[-length * BLOCKS :].reshape(BLOCKS, length), axis=1)
    levels = blocks[:, length // 4 : length - length // 4].mean(axis=1)
    slope = theil_sen(levels) / length
    if slope <= 0 or not _keeps_rising(used) or _levels_off(levels):
        return None
    p = max(_rise_p(levels, cut) for cut in range(BLOCKS - 1))
    return Growth(slope, p) if p < alpha else None


def theil_sen(values: Floats) -> float:
    """Gives the median slope over all pairs of values, per place."""
    early, late = np.triu_indices(len(values), 1)
    return float(np.median((values[late] - values[early]) / (late - early)))


def _keeps_rising(used: Floats) -> bool:
    """Asks the low-water marks of three thirds to rise twice, the second time nearly as much.

    Sawteeth return to their base, a step rises once, a warm-up rises less and less.
    """
    first, second, third = (float(np.quantile(part, 0.1)) for part in np.array_split(used, 3))
    rises = (second - first, third - second)
    return min(rises) > 0.4 * max(rises)


def _levels_off(levels: Floats) -> bool:
    """Says whether the rise itself is slowing down: a warm-up about as slow as the window."""
    place = _places(len(levels))
    return (
        _coefficient_p(np.stack([-(place**2), np.ones(len(levels)), place], axis=1), levels)
        < SLOWING
    )


def _rise_p(levels: Floats, cut: int) -> float:
    """Gives the one-sided p value of a slope beside a free step after block `cut`; 0 is no step.

    A new bucket's memory is such a step: whichever cut explains the rise best has the last word.
    """
    place = _places(len(levels))
    columns = [place, np.ones(len(levels))]
    if cut:
        columns.append((np.arange(len(levels)) > cut).astype(np.float64))
    return _coefficient_p(np.stack(columns, axis=1), levels)


def _places(count: int) -> Floats:
    return np.linspace(-1, 1, count)


def _coefficient_p(design: Floats, levels: Floats) -> float:
    """Gives the chance of the first column's coefficient, or a greater one, where it has none."""
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ levels
    rest = levels - design @ weights
    freedom = len(levels) - design.shape[1]
    memory = _memory(rest)
    # Blocks that remember each other count for fewer blocks and widen the error.
    widening = (1 + memory) / (1 - memory)
    error = math.sqrt(max(float(rest @ rest), 1e-12) / freedom * inverse[0, 0] * widening)
    return _student_tail(float(weights[0]) / error, max(freedom / widening, 1.0))


def _memory(rest: Floats) -> float:
    """Estimates the lag-one correlation of residuals, with its small-sample bias put back."""
    raw = float(rest[1:] @ rest[:-1] / max(float(rest @ rest), 1e-12))
    return min(max(raw + (1 + 4 * raw) / len(rest), 0.0), 0.9)


def _student_tail(t: float, freedom: float) -> float:
    """Gives P(T > t) by Wallace's normal approximation (1959), good to two digits of z."""
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    z = math.copysign(scale * math.sqrt(freedom * math.log1p(t * t / freedom)), t)
    return 0.5 * math.erfc(z / math.sqrt(2))
