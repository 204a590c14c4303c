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
    audio_rate: float
    """Seconds of sound learned from in a second."""
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
    whole = sum(step.seconds for step in times) or 1e-9
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
    return Verdict(
        steps=len(times),
        step_seconds=median(step.seconds for step in times),
        busy=busy / whole,
        audio_rate=sum(step.audio for step in times) / whole,
        waits=waits,
    )


def verdict_line(step: int, values: Mapping[str, float], verdict: Verdict, queue: str) -> str:
    """The log line of a step; `queue` is as in "3/3"."""
    waits = verdict.waits
    data = waits.get("read", 0.0) + waits.get("extract", 0.0)
    transfer = waits.get("transfer", 0.0)
    parts = [
        f"step {step}",
        *(f"{name} {value:.4g}" for name, value in values.items()),
        f"{verdict.step_seconds * 1000:.0f} ms",
        f"{verdict.audio_rate:.0f} s audio/s",
        f"model busy {percent(verdict.busy)}",
        f"waits: data {percent(data)} transfer {percent(transfer)} "
        f"handover {percent(waits.get('handover', 0.0))} host {percent(waits['host'])}",
        f"queue {queue}",
        verdict.bound,
    ]
    return " · ".join(parts)


def percent(share: float) -> str:
    """A share as people read it: "97 %"."""
    return f"{100 * share:.0f} %"
