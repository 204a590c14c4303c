"""One line that says how fast a run goes and what holds it back, from its own books."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from myxtts.telemetry.steps import StepTimes

COMPUTE_BOUND = 0.9
"""A model device busy for this share of the time has no wait worth naming."""


@dataclass(frozen=True)
class Verdict:
    """What a window of steps says."""

    steps: int
    step_seconds: float
    """Median from one step's end to the next."""
    busy: float
    """Share of the time in which the model device worked."""
    waits: Mapping[str, float]
    """Share of the time in which it waited, by cause: read, extract, transfer, handover, host."""

    @property
    def bound(self) -> str:
        """What limits the speed."""
        if self.busy >= COMPUTE_BOUND or not self.waits:
            return "compute-bound"
        return max(self.waits, key=lambda cause: self.waits[cause]) + "-bound"


def judge(times: Sequence[StepTimes]) -> Verdict:
    """The verdict on a window of finished steps."""
    whole = sum(step.seconds for step in times)
    busy = sum(step.busy for step in times)
    causes: Counter[str] = Counter()
    for step in times:
        causes.update(step.waits)
    waited = sum(causes.values())
    # A wait of the host is a wait of the device only where the device had nothing left to do.
    idle = max(0.0, whole - busy)
    scale = min(1.0, idle / waited) if waited else 0.0
    waits = {cause: seconds * scale / whole for cause, seconds in causes.items()}
    waits["host"] = max(0.0, idle - waited * scale) / whole
    return Verdict(len(times), median(step.seconds for step in times), busy / whole, waits)


def verdict_line(
    step: int, values: Mapping[str, float], verdict: Verdict, waiting: int, depth: int
) -> str:
    """The log line of a step."""
    data = verdict.waits.get("read", 0.0) + verdict.waits.get("extract", 0.0)
    parts = [
        f"step {step}",
        *(f"{name} {value:.4g}" for name, value in values.items()),
        f"{verdict.step_seconds * 1000:.0f} ms",
        f"model busy {verdict.busy:.0%}",
        f"waits: data {data:.0%} transfer {verdict.waits.get('transfer', 0.0):.0%}"
        f" host {verdict.waits['host']:.0%}",
        f"queue {waiting}/{depth}",
        verdict.bound,
    ]
    return " · ".join(parts)
