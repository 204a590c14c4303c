"""Names what is wrong with a run while it runs, and the setting that would change it.

docs/alarms.md has every alarm's definition, remedy and measured false-alarm rate.
Legend: seconds per step; waits in seconds per step by cause; memory in bytes; MB is 10**6 bytes.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from myxtts.telemetry import growth, periods

Floats = NDArray[np.float64]

FEWEST_STEPS = 32
# One hiccup is not variation: the slowest hundredth, and at least one step, is left out.
TRIMMED = 0.01
# A period that costs less than this share of the time is left in peace, however certain.
LEAST_COST = 0.02
# A kilobyte a step is a gigabyte in a million steps: the least leak worth a word.
LEAST_BYTES_PER_STEP = 1024
# Uneven reading is evened out before the data device, uneven work of that device behind it.
SETTING_OF_WAIT = {
    "read": "--prefetch-buffer-size or data.num_workers",
    "extract": "pipeline.depth",
    "transfer": "pipeline.depth",
    "handover": "pipeline.depth",
}
SHAPE_SETTINGS = "--enable-static-shapes"
# What a known period's setting tells of its source, by a word in its name.
SOURCES = {
    "depth": "refilling the buffer",
    "buffer": "refilling the buffer",
    "prefetch": "refilling the buffer",
    "log": "writing the log",
    "save": "writing a checkpoint",
    "checkpoint": "writing a checkpoint",
    "shard": "opening the next shard",
}


@dataclass(frozen=True)
class Alarm:
    """One fault: its name, what was measured, and the flag or setting to change."""

    name: str
    message: str
    flag: str


def variation(seconds: Floats, usual: float | None = None) -> float:
    """Gives the spread of step times about the `usual` time, as a share of it; else the median.

    The root of the mean squared distance, after the slowest hundredth is left out.
    """
    if len(seconds) < 2:
        return 0.0  # With the slowest left out there is nothing to spread.
    kept = np.sort(seconds)[: len(seconds) - math.ceil(TRIMMED * len(seconds))]
    middle = float(np.median(kept)) if usual is None else usual
    return float(np.sqrt(np.mean((kept - middle) ** 2))) / middle if middle > 0 else 0.0


def step_time_variation(
    seconds: ArrayLike,
    waits: Mapping[str, ArrayLike],
    limit: float,
    unusual: ArrayLike | None = None,
    usual: float | None = None,
) -> Alarm | None:
    """Alarms when steps vary by more than `limit`; `unusual` marks steps that do not count.

    Those are first steps, steps that compiled and steps that saved: slow for a known reason.
    """
    times = np.asarray(seconds, np.float64)
    counted = np.full(len(times), True) if unusual is None else ~np.asarray(unusual, np.bool_)
    times = times[counted]
    if len(times) < FEWEST_STEPS or (share := variation(times, usual)) <= limit:
        return None
    middle = float(np.median(times)) if usual is None else usual
    parts = {cause: np.asarray(wait, np.float64)[counted] for cause, wait in waits.items()}
    cause, part = _blamed_wait(times - middle, parts)
    why = (
        f"{part:.0%} of it is waiting for {cause}"
        if cause
        else "the waits do not explain it: batches of unequal shape, or a shared device"
    )
    return Alarm(
        "step-time-variation",
        f"step times vary by {share:.0%} of the usual {_time(middle)}, limit {limit:.0%}; {why}",
        SETTING_OF_WAIT.get(cause, SHAPE_SETTINGS),
    )


def _blamed_wait(lateness: Floats, waits: Mapping[str, Floats]) -> tuple[str, float]:
    """Gives the wait that goes furthest with the lateness; none, if all explain less than half."""
    total = float(lateness @ lateness)
    shares = {cause: min(float(wait @ lateness) / total, 1.0) for cause, wait in waits.items()}
    cause = max(shares, key=lambda name: shares[name], default="")
    # Waits that only together explain it still point at the largest of them.
    explained = sum(max(share, 0.0) for share in shares.values())
    return (cause, shares[cause]) if explained >= 0.5 else ("", 0.0)


def oscillation(seconds: ArrayLike, known_periods: Mapping[str, int], alpha: float) -> Alarm | None:
    """Alarms when step times keep a beat; noise alone does so with a rate of at most `alpha`.

    `known_periods` maps a setting's name to its number of steps, as in `{"save_every": 500}`.
    """
    times = np.asarray(seconds, np.float64)
    beat = periods.find_period(times, alpha)
    if beat is None or beat.cost < LEAST_COST:
        return None
    setting, source = _likely_source(beat.steps, known_periods)
    return Alarm(
        "oscillation",
        f"step times repeat every {beat.steps:.3g} steps "
        f"({_time(beat.steps * float(times.mean()))}) and lose {beat.cost:.0%} of the time; "
        f"likely {source}",
        setting,
    )


def _likely_source(steps: float, known_periods: Mapping[str, int]) -> tuple[str, str]:
    for setting, known in known_periods.items():
        if abs(steps - known) <= max(0.5, 0.02 * known):
            words = (source for word, source in SOURCES.items() if word in setting)
            return setting, f"{next(words, 'work done')} ({setting} is {known})"
    if abs(steps - 2) < 0.1:
        return "pipeline.depth", "two stages taking turns instead of running together"
    return "--prefetch-buffer-size", "none of the settings with a known period"


def memory_growth(
    used: ArrayLike,
    device: str,
    alpha: float,
    steps_per_sample: float = 1,
    seconds_per_step: float = 0,
    free_bytes: float | None = None,
) -> Alarm | None:
    """Alarms when `used` bytes rise steadily; without a leak, at a rate of at most `alpha`.

    `device` is empty for the host. Free memory and the step's time give the hours that are left.
    """
    rise = growth.find_growth(np.asarray(used, np.float64), alpha)
    if rise is None or (rate := rise.bytes_per_step / steps_per_sample) < LEAST_BYTES_PER_STEP:
        return None
    message = f"memory of {device or 'the host'} grows by {_size(rate)} a step"
    if free_bytes is not None and seconds_per_step > 0:
        hours = free_bytes / rate * seconds_per_step / 3600
        message += f"; the free {_size(free_bytes)} will be gone in {hours:.3g} hours"
    # Device memory mostly grows with shapes, each a program of its own; the host's with queues.
    return Alarm("memory-growth", message, SHAPE_SETTINGS if device else "pipeline.depth")


def retrace(known: Mapping[str, int], now: Mapping[str, int], allowed: int = 1) -> Alarm | None:
    """Alarms when a program's tracing count rose above the `known` one, and above `allowed`.

    `known` begins as the counts after step 1; `allowed` is the number of buckets.
    """
    risen = {
        program: count
        for program, count in now.items()
        if program in known and count > max(known[program], allowed)
    }
    if not risen:
        return None
    program = max(risen, key=lambda name: risen[name] - known[name])
    return Alarm(
        "retrace",
        f"program {program} was traced {risen[program]} times, up from {known[program]}; "
        f"{allowed} would do",
        SHAPE_SETTINGS,
    )


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _size(size: float) -> str:
    for unit, least in (("GB", 1e9), ("MB", 1e6)):
        if round(size / least, 3) >= 1:
            return f"{size / least:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


@dataclass(frozen=True)
class StepRecord:
    """What one step tells the watch; memory may be sampled less often than every step."""

    step: int
    seconds: float
    waits: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    free: Mapping[str, int] = field(default_factory=dict)
    traces: Mapping[str, int] = field(default_factory=dict)
    unusual: bool = False


@dataclass(frozen=True)
class AlarmLimits:
    """When to alarm; `false_alarms` is a run's chance of a false one, for each tested alarm."""

    variation: float
    log_every: int
    known_periods: Mapping[str, int] = field(default_factory=dict)
    false_alarms: float = 1e-3
    traces_allowed: int = 1
    results_lag: int = 0
    """Steps by which the newest record lags behind when a log line is due."""


class AlarmWatch:
    """Is fed every step, looks every `log_every` steps, and tells each episode of a fault once.

    An alarm may sound again after `QUIET_LOOKS` looks in a row without it. The i-th look spends
    1/(i(i+1)) of the run's false-alarm rate, which adds up to all of it in a run without end.
    """

    RECENT_STEPS = 256
    STEPS = 1024
    MEMORY_SAMPLES = 4096
    QUIET_LOOKS = 3

    def __init__(self, limits: AlarmLimits) -> None:
        self._limits = limits
        self._records: deque[StepRecord] = deque(maxlen=self.STEPS)
        self._memory: defaultdict[str, deque[tuple[int, int]]] = defaultdict(
            lambda: deque(maxlen=self.MEMORY_SAMPLES)
        )
        self._known_traces: dict[str, int] = {}
        self._traces: dict[str, int] = {}
        self._free: dict[str, int] = {}
        self._looks: defaultdict[str, int] = defaultdict(int)
        self._next_look: defaultdict[str, int] = defaultdict(int)
        self._quiet: dict[str, int] = {}
        self._best_pace: float | None = None

    def feed(self, record: StepRecord) -> list[Alarm]:
        """Takes one step and gives the alarms that begin with it."""
        self._records.append(record)
        self._free.update(record.free)
        for program, count in record.traces.items():
            # Allowed from the start: a first step that was traced twice is told as well.
            self._known_traces.setdefault(program, min(count, self._limits.traces_allowed))
            if count > self._traces.get(program, count):
                # The program's own memory is a step up with a known cause: begin afresh.
                self._memory.clear()
        for device, size in record.memory.items():
            self._memory[device].append((record.step, size))
        self._traces.update(record.traces)
        if (record.step + self._limits.results_lag) % self._limits.log_every:
            return []
        return list(self._begun(self._look(record.step)))

    def _begun(self, looks: Iterable[tuple[str, Alarm | None]]) -> Iterable[Alarm]:
        for key, alarm in looks:
            if alarm is None:
                self._quiet[key] = self._quiet.get(key, self.QUIET_LOOKS) + 1
                continue
            if self._quiet.get(key, self.QUIET_LOOKS) >= self.QUIET_LOOKS:
                yield alarm
            self._quiet[key] = 0

    def _look(self, step: int) -> Iterable[tuple[str, Alarm | None]]:
        yield "variation", self._look_at_variation()
        yield "retrace", retrace(self._known_traces, self._traces, self._limits.traces_allowed)
        # Told once, the count is the new normal, and the episode ends when it stands still.
        self._known_traces |= self._traces
        if alpha := self._spend("oscillation", step, len(self._records)):
            times = [each.seconds for each in self._records]
            yield "oscillation", oscillation(times, self._limits.known_periods, alpha)
        for device, samples in self._memory.items():
            enough = len(samples) >= growth.FEWEST_STEPS
            window = samples[-1][0] - samples[0][0] if enough else 0
            if alpha := self._spend("memory " + device, step, window):
                yield "memory " + device, self._look_at_memory(device, alpha / len(self._memory))

    def _spend(self, key: str, step: int, window: int) -> float:
        """Gives this look's share of the false-alarm rate, or 0 before enough steps are new.

        A look at nearly the same window learns nothing, yet would have to be paid for.
        """
        if window < periods.FEWEST_STEPS or step < self._next_look[key]:
            return 0.0
        self._next_look[key] = step + window // 8
        self._looks[key] += 1
        return self._limits.false_alarms / (self._looks[key] * (self._looks[key] + 1))

    def _look_at_variation(self) -> Alarm | None:
        """Looks at recent steps, against the best pace of the run so that slow drift shows too."""
        recent = list(self._records)[-self.RECENT_STEPS :]
        if len(recent) == self.RECENT_STEPS:
            pace = float(np.median([each.seconds for each in recent]))
            self._best_pace = pace if self._best_pace is None else min(pace, self._best_pace)
        causes = sorted({cause for each in recent for cause in each.waits})
        return step_time_variation(
            [each.seconds for each in recent],
            {cause: [each.waits.get(cause, 0.0) for each in recent] for cause in causes},
            self._limits.variation,
            [each.unusual for each in recent],
            self._best_pace,
        )

    def _look_at_memory(self, device: str, alpha: float) -> Alarm | None:
        samples = self._memory[device]
        steps = (samples[-1][0] - samples[0][0]) / (len(samples) - 1)
        return memory_growth(
            [size for _, size in samples],
            device,
            alpha,
            steps,
            float(np.mean([each.seconds for each in self._records])),
            self._free.get(device),
        )
