"""Where a step's time goes: its parts on the host, and how long the model device was busy.

Legend: a step's cycle runs from the end of the step before to its own end; its parts
are the outermost spans of the stepping thread in between (wait, step, results, log …).
Nothing is filled up: what no span covers is missing from the sum, and a test looks for it.
"""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from myxtts.telemetry.record import Recorder, Span

PRODUCER_STAGES = ("read", "extract", "transfer")
KEPT_SPANS = 256
"""Finished producer spans kept to explain a wait: many more than one wait can cover."""


@dataclass(frozen=True)
class StepTimes:
    """One step, all in seconds."""

    step: int
    start: float
    seconds: float
    parts: Mapping[str, float]
    waits: Mapping[str, float]
    """The part "wait" by what the producer was doing meanwhile; "handover" is the rest."""
    busy: float
    """How long the model device worked on it."""
    audio: float = 0.0
    """Sound in its batch."""


@dataclass
class _Cycle:
    start: float
    parts: dict[str, float] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    dispatched: float = 0.0
    end: float = 0.0


class StepLedger:
    """Books every step of one thread from the spans it sees, and writes one line for each."""

    def __init__(self, recorder: Recorder, device: str) -> None:
        self._recorder = recorder
        self._device = device
        # A CPU device works inside the call; a GPU goes on after it.
        self._synchronous = "CPU" in device
        self._thread = threading.current_thread()
        self._made: deque[Span] = deque(maxlen=KEPT_SPANS)
        self._open: dict[int, _Cycle] = {}
        self._cycle: _Cycle | None = None
        self._device_free = 0.0
        recorder.on_span = self._see

    def completed(self, step: int, at: float, audio: float = 0.0) -> StepTimes:
        """Closes the books of a step whose results were there at `at`."""
        cycle = self._open.pop(step)
        done = cycle.end if self._synchronous else at
        busy = done - max(cycle.dispatched, self._device_free)
        self._device_free = done
        times = StepTimes(
            step=step,
            start=cycle.start,
            seconds=cycle.end - cycle.start,
            parts=cycle.parts,
            waits=cycle.waits,
            busy=max(0.0, busy),
            audio=audio,
        )
        self._write(times)
        return times

    def _see(self, span: Span) -> None:
        if threading.current_thread() is not self._thread:
            if span.name in PRODUCER_STAGES:
                self._made.append(span)
            return
        if span.outermost:
            self._book(span)

    def _book(self, span: Span) -> None:
        # The first cycle begins with its first span: building the model is no part of a step.
        cycle = self._cycle = self._cycle or _Cycle(span.start)
        cycle.parts[span.name] = cycle.parts.get(span.name, 0.0) + span.seconds
        if span.name == "wait":
            self._explain(span, cycle.waits)
        if span.name == "step" and span.batch is not None:
            cycle.dispatched, cycle.end = span.start, span.start + span.seconds
            self._open[span.batch] = cycle
            self._cycle = _Cycle(cycle.end)

    def _explain(self, wait: Span, causes: dict[str, float]) -> None:
        """Splits a wait by the stages that the producer went through meanwhile."""
        explained = 0.0
        for made in tuple(self._made):
            start = max(made.start, wait.start)
            shared = min(made.start + made.seconds, wait.start + wait.seconds) - start
            if shared > 0:
                causes[made.name] = causes.get(made.name, 0.0) + shared
                explained += shared
        rest = max(0.0, wait.seconds - explained)
        causes["handover"] = causes.get("handover", 0.0) + rest

    def _write(self, times: StepTimes) -> None:
        self._recorder.write(
            {
                "kind": "step",
                "step": times.step,
                "start": round(times.start, 7),
                "seconds": round(times.seconds, 7),
                "parts": _rounded(times.parts),
                "waits": _rounded(times.waits),
                "busy": {self._device: round(times.busy, 7)},
                "audio": round(times.audio, 3),
            }
        )


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 7) for name, value in seconds.items()}
