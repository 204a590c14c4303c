"""Measures how often the alarms cry wolf in a whole run, and how soon they see a real fault.

Every run is fed to an AlarmWatch step by step, as training does. docs/alarms.md has the figures.
"""

import argparse
import math
import time
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from myxtts.telemetry.alarms import AlarmLimits, AlarmWatch, StepRecord

Floats = NDArray[np.float64]
# One row a run, one column a step.
Maker = Callable[[np.random.Generator, int, int], Floats]
Record = Callable[[int, float], StepRecord]

MB = 1e6
LOG_EVERY = 50


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--false-alarms", type=float, default=1e-3)
    parser.add_argument("--fault-runs", type=int, default=100)
    parser.add_argument("--alarm", default="", help="measure this alarm alone")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    limits = AlarmLimits(0.30, LOG_EVERY, false_alarms=options.false_alarms)
    began = time.perf_counter()
    looks = options.steps // LOG_EVERY
    print(
        f"{options.runs} runs of {options.steps} steps and {looks} looks a row, seed {options.seed}"
    )
    print(f"stated rate of false alarms per run: {options.false_alarms:g} (95 % intervals)\n")
    for name, noises, faults, record in (
        ("oscillation", TIME_NOISES, BEATS, _timed),
        ("step-time-variation", QUIET_NOISES, UNEVEN, _timed),
        ("memory-growth", MEMORY_NOISES, LEAKS, _held),
    ):
        if options.alarm not in ("", name):
            continue
        seeds = np.random.default_rng(options.seed)
        _print_false_alarms(name, noises, record, limits, (seeds, options.runs, options.steps))
        size = (seeds, options.fault_runs, options.steps)
        _print_detections(name, faults, record, limits, size)
    print(f"took {time.perf_counter() - began:.0f} s")


def _print_false_alarms(
    name: str,
    noises: Mapping[str, Maker],
    record: Record,
    limits: AlarmLimits,
    size: tuple[np.random.Generator, int, int],
) -> None:
    print(f"| {name}: noise | false alarms per run | 95 % interval |\n| --- | --- | --- |")
    for noise, maker in noises.items():
        heard = [_first_alarm(name, row, record, limits) for row in maker(*size)]
        hits, runs = sum(step is not None for step in heard), len(heard)
        low, high = _wilson(hits, runs)
        rates = f"{100 * hits / runs:.2f} % | {100 * low:.2f}-{100 * high:.2f} %"
        print(f"| {noise} | {rates} |", flush=True)
    print()


def _print_detections(
    name: str,
    faults: Mapping[str, Maker],
    record: Record,
    limits: AlarmLimits,
    size: tuple[np.random.Generator, int, int],
) -> None:
    print(f"| {name}: fault | found | median steps until the alarm |\n| --- | --- | --- |")
    for fault, maker in faults.items():
        heard = [_first_alarm(name, row, record, limits) for row in maker(*size)]
        steps = [step for step in heard if step is not None]
        middle = f"{np.median(steps):.0f}" if steps else "-"
        print(f"| {fault} | {len(steps) / len(heard):.0%} | {middle} |", flush=True)
    print()


def _first_alarm(name: str, row: Floats, record: Record, limits: AlarmLimits) -> int | None:
    watch = AlarmWatch(limits)
    for step, value in enumerate(row.tolist(), start=1):
        if any(alarm.name == name for alarm in watch.feed(record(step, value))):
            return step
    return None


def _timed(step: int, seconds: float) -> StepRecord:
    return StepRecord(step, seconds, {"read": seconds / 2})


def _held(step: int, used: float) -> StepRecord:
    return StepRecord(step, 0.1, memory={"/GPU:1": int(used)})


def _wilson(hits: int, runs: int) -> tuple[float, float]:
    z = 1.96
    middle = (hits + z * z / 2) / (runs + z * z)
    half = z / (runs + z * z) * math.sqrt(hits * (runs - hits) / runs + z * z / 4)
    return max(middle - half, 0.0), middle + half


def _white(seeds: np.random.Generator, runs: int, steps: int) -> Floats:
    return seeds.standard_normal((runs, steps))


def _ar(memory: float) -> Maker:
    """Makes AR(1) noise of unit variance."""

    def make(seeds: np.random.Generator, runs: int, steps: int) -> Floats:
        noise = seeds.standard_normal((runs, steps))
        for step in range(1, steps):
            noise[:, step] *= math.sqrt(1 - memory * memory)
            noise[:, step] += memory * noise[:, step - 1]
        return noise

    return make


def _around(share: float, noise: Maker) -> Maker:
    """Makes step times of 100 ms with this relative noise."""
    return lambda *size: 0.1 * np.maximum(1 + share * noise(*size), 0.05)


def _log(sigma: float, noise: Maker) -> Maker:
    return lambda *size: 0.1 * np.exp(sigma * noise(*size))


def _outliers(share: float, factor: float) -> Maker:
    """Makes step times of which a random `share` is `factor` times as long."""

    def make(seeds: np.random.Generator, runs: int, steps: int) -> Floats:
        times = _around(0.1, _white)(seeds, runs, steps)
        return times * np.where(seeds.random((runs, steps)) < share, float(factor), 1.0)

    return make


def _shaped(shape: Callable[[Floats], Floats], noise: Maker) -> Maker:
    """Makes noisy step times, multiplied by a shape over the step numbers."""
    return lambda seeds, runs, steps: (
        noise(seeds, runs, steps) * shape(np.arange(steps, dtype=np.float64))
    )


def _level(sigma: float, shape: Callable[[Floats], Floats], noise: Maker = _white) -> Maker:
    """Makes bytes: 4 GB, noise of `sigma` and a shape over the step numbers."""
    return lambda seeds, runs, steps: (
        4000 * MB
        + sigma * noise(seeds, runs, steps)
        + shape(np.arange(steps, dtype=np.float64))[None, :]
    )


def _one_step(seeds: np.random.Generator, runs: int, steps: int) -> Floats:
    risen = np.arange(steps) >= seeds.integers(1, steps, (runs, 1))
    return 4000 * MB + 1000 * MB * risen + 50 * MB * _white(seeds, runs, steps)


def _ladder(seeds: np.random.Generator, runs: int, steps: int) -> Floats:
    """Makes six buckets that each take memory when first met, rarer ones later."""
    met = seeds.exponential(10.0 * 2 ** np.arange(6), (runs, 6))
    risen = np.count_nonzero(np.arange(steps) >= met[:, :, None], axis=1)
    return np.asarray(4000 * MB + 300 * MB * risen + 20 * MB * _white(seeds, runs, steps))


def _tooth(period: float) -> Callable[[Floats], Floats]:
    return lambda step: 400 * MB * ((step / period) % 1)


def _spike(period: int, factor: float) -> Callable[[Floats], Floats]:
    return lambda step: np.where(step % period == period - 1, factor, 1.0)


def _nothing(step: Floats) -> Floats:
    return np.zeros_like(step)


TIME_NOISES = {
    "white, 10 %": _around(0.1, _white),
    "AR(1) 0.5": _around(0.1, _ar(0.5)),
    "AR(1) 0.9": _around(0.1, _ar(0.9)),
    "AR(1) -0.8": _around(0.1, _ar(-0.8)),
    "lognormal, sigma 1": _log(1.0, _white),
    "lognormal AR(1) 0.9": _log(0.7, _ar(0.9)),
    "2 % of steps 10 times as long": _outliers(0.02, 10),
    "drift to twice the time": _shaped(lambda step: 1 + step / step[-1], _around(0.1, _white)),
}
BEATS = {
    "every second step slow (90/5)": _shaped(_spike(2, 18), _around(0.1, _white)),
    "every second step 20 % slower": _shaped(_spike(2, 1.2), _around(0.1, _white)),
    "refill every 16 steps, 3 times as long": _shaped(_spike(16, 3), _around(0.1, _white)),
    "checkpoint every 100 steps, 10 times": _shaped(_spike(100, 10), _around(0.1, _white)),
    "sine of 7.3 steps, 20 %": _shaped(
        lambda step: 1 + 0.2 * np.sin(2 * np.pi * step / 7.3), _around(0.1, _white)
    ),
    "sine of 40 steps, 20 %, AR(1) 0.9": _shaped(
        lambda step: 1 + 0.2 * np.sin(2 * np.pi * step / 40), _around(0.1, _ar(0.9))
    ),
}
QUIET_NOISES = {
    "white, 20 %": _around(0.2, _white),
    "AR(1) 0.9, 20 %": _around(0.2, _ar(0.9)),
    "lognormal, sigma 0.2": _log(0.2, _white),
    "0.5 % of steps 3 times as long": _outliers(0.005, 3),
}
UNEVEN = {
    "every second step slow (90/5)": BEATS["every second step slow (90/5)"],
    "every 50th step 10 times as long": _shaped(_spike(50, 10), _around(0.1, _white)),
    "every 50th step 3 times as long": _shaped(_spike(50, 3), _around(0.1, _white)),
    "5 % of steps 5 times as long": _outliers(0.05, 5),
    "white, 40 %": _around(0.4, _white),
    "drift to three times the time": _shaped(
        lambda step: 1 + 2 * step / step[-1], _around(0.1, _white)
    ),
}
MEMORY_NOISES = {
    "white, 200 MB": _level(200 * MB, _nothing),
    "AR(1) 0.5": _level(200 * MB, _nothing, _ar(0.5)),
    "AR(1) 0.9": _level(200 * MB, _nothing, _ar(0.9)),
    "AR(1) 0.98": _level(200 * MB, _nothing, _ar(0.98)),
    "sawtooth of 23 steps": _level(20 * MB, _tooth(23)),
    "sawtooth of 80 steps": _level(20 * MB, _tooth(80)),
    "one step of 1 GB": _one_step,
    "six buckets met one by one": _ladder,
    "warm-up of 5 GB over 50 steps": _level(50 * MB, lambda step: -5000 * MB * np.exp(-step / 50)),
    "warm-up of 5 GB over 100 steps, noise 300 MB": _level(
        300 * MB, lambda step: -5000 * MB * np.exp(-step / 100)
    ),
    "warm-up of 5 GB over 300 steps, noise 300 MB": _level(
        300 * MB, lambda step: -5000 * MB * np.exp(-step / 300)
    ),
    "warm-up of 5 GB over 300 steps": _level(
        50 * MB, lambda step: -5000 * MB * np.exp(-step / 300)
    ),
}
LEAKS = {
    "1 MB a step, noise 200 MB": _level(200 * MB, lambda step: MB * step),
    "1 MB a step, AR(1) 0.5 of 200 MB": _level(200 * MB, lambda step: MB * step, _ar(0.5)),
    "1 MB a step, sawtooth of 400 MB": _level(20 * MB, lambda step: MB * step + _tooth(23)(step)),
    "10 MB every tenth step, noise 20 MB": _level(
        20 * MB, lambda step: 10 * MB * np.floor(step / 10)
    ),
    "warm-up of 5 GB over 50 steps, then 1 MB a step": _level(
        50 * MB, lambda step: MB * step - 5000 * MB * np.exp(-step / 50)
    ),
    "10 kB a step, noise 1 MB": _level(MB, lambda step: 0.01 * MB * step),
}


if __name__ == "__main__":
    main()
