"""Where a step's time goes: its parts on the host, and its stretch on the model device.

Legend: a step's cycle runs on the host, from the end of the step before to its own end; its
parts are the outermost spans of the stepping thread in between (wait, step, results, log …).
Nothing is filled up: what no span covers is missing from the sum, and a test looks for it.
A step's stretch runs on the device, from when it was queued or the step before was done.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from myxtts.telemetry.record import Recorder, Span

MOVER = "mover"
"""The thread that the loop waits for."""
EXTRACTOR = "extractor"
"""The thread that the mover waits for; it waits for clips itself."""
PAUSES = frozenset({"validate", "pictures", "copy", "save"})
"""What the loop does between some steps, asked to; it is no unevenness of theirs."""
KEPT_SPANS = 256
"""Finished spans of each thread kept to explain a wait: many more than one wait can cover."""


Stretch = tuple[float, float]
"""Start and end, in seconds since the run's start."""


@dataclass(frozen=True)
class StepTimes:
    """One step, all in seconds; `busy` is never more than `seconds`."""

    step: int
    start: float
    """Of the host's cycle."""
    seconds: float
    """From the end of the step before to its own, on the device."""
    host_seconds: float
    """The same on the host, which runs ahead of a GPU; the parts sum to this."""
    parts: Mapping[str, float]
    waits: Mapping[str, float]
    """The part "wait" by what the producer was doing meanwhile; "handover" is the rest."""
    busy: float
    """How long the model device worked on it."""
    audio: float = 0.0
    """Sound in its batch."""

    @property
    def paused(self) -> bool:
        """Whether the loop did something else first: slow for a known reason."""
        return not PAUSES.isdisjoint(self.parts)


@dataclass
class _Cycle:
    start: float
    parts: dict[str, float] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    queued: float = 0.0
    end: float = 0.0


class StepLedger:
    """Books every step of one thread from the spans it sees, and writes one line for each.

    Several model devices wait for one another at every update: the books follow the first.
    """

    def __init__(self, recorder: Recorder, device: str) -> None:
        self._recorder = recorder
        self._device = device
        # A CPU device works inside the call; a GPU goes on after it.
        self._synchronous = "CPU" in device
        self._thread = threading.current_thread()
        self._spans: dict[str, deque[Span]] = {
            thread: deque(maxlen=KEPT_SPANS) for thread in (MOVER, EXTRACTOR)
        }
        self._open: dict[int, _Cycle] = {}
        self._cycle: _Cycle | None = None
        self._device_free: float | None = None
        self._extracted: deque[float] = deque()
        """Seconds of extracting that are not asked for yet; every data device adds its own."""
        self._asked = recorder.now()
        recorder.on_span = self._see
        recorder.on_written = self._book_own

    def completed(
        self,
        step: int,
        batch: int,
        at: float,
        audio: float = 0.0,
        memory: Mapping[str, int] | None = None,
    ) -> StepTimes:
        """Closes the books of the step on a batch, whose results were there at `at`."""
        cycle = self._open.pop(batch)
        done = cycle.end if self._synchronous else max(at, cycle.queued)
        before = cycle.start if self._device_free is None else self._device_free
        begun = max(cycle.queued, before)
        self._device_free = done
        times = StepTimes(
            step=step,
            start=cycle.start,
            seconds=done - before,
            host_seconds=cycle.end - cycle.start,
            parts=cycle.parts,
            waits=cycle.waits,
            busy=done - begun,
            audio=audio,
        )
        self._write(times, batch, begun, memory or {})
        return times

    def data_busy(self) -> float:
        """Share of the time in which a data device extracted, all of them added up.

        It is the time since the last call, or since the first step's cycle began. A stretch that
        began before is counted whole: it lacked then.
        """
        begun, self._asked = self._asked, self._recorder.now()
        worked = sum(self._extracted.popleft() for _ in range(len(self._extracted)))
        return worked / max(self._asked - begun, 1e-9)

    def _see(self, span: Span) -> None:
        if span.name == "extract":
            self._extracted.append(span.seconds)
        if threading.current_thread() is self._thread:
            if span.outermost:
                self._book(span)
        elif span.outermost and span.thread in self._spans:
            self._spans[span.thread].append(span)

    def _book(self, span: Span) -> None:
        # The first cycle begins with its first span: building the model is no part of a step.
        if self._cycle is None:
            self._cycle, self._asked = _Cycle(span.start), span.start
            self._extracted.clear()
        cycle = self._cycle
        cycle.parts[span.name] = cycle.parts.get(span.name, 0.0) + span.seconds
        if span.name == "wait":
            self._explain(_ends(span), cycle.waits)
        if span.name == "step" and span.batch is not None:
            cycle.queued, cycle.end = span.start, span.start + span.seconds
            self._open[span.batch] = cycle
            self._cycle = _Cycle(cycle.end)

    def _book_own(self, seconds: float) -> None:
        """Telemetry's own time is a part like any other."""
        if self._cycle and threading.current_thread() is self._thread:
            parts = self._cycle.parts
            parts["telemetry"] = parts.get("telemetry", 0.0) + seconds

    def _explain(self, wait: Stretch, causes: dict[str, float]) -> None:
        """Splits a wait by what the mover did meanwhile, and its waits by what its feeder did."""
        blamed: defaultdict[str, float] = defaultdict(float)
        for name, stretch in self._meanwhile(MOVER, wait):
            if name == "transfer":
                blamed[name] += _length(stretch)
            elif name == "wait":
                for inner, part in self._meanwhile(EXTRACTOR, stretch):
                    cause = {"extract": "extract", "wait": "read", "read": "read"}.get(inner)
                    if cause:
                        blamed[cause] += _length(part)
        blamed["handover"] = max(0.0, _length(wait) - sum(blamed.values()))
        for cause, seconds in blamed.items():
            causes[cause] = causes.get(cause, 0.0) + seconds

    def _meanwhile(self, thread: str, wait: Stretch) -> Iterator[tuple[str, Stretch]]:
        for span in tuple(self._spans[thread]):
            start, end = _ends(span)
            shared = max(start, wait[0]), min(end, wait[1])
            if _length(shared) > 0:
                yield span.name, shared

    def _write(self, times: StepTimes, batch: int, begun: float, memory: Mapping[str, int]) -> None:
        event: dict[str, Any] = {"kind": "step", "memory": memory}
        for name, value in vars(times).items():
            rounded = isinstance(value, Mapping)
            event[name] = _rounded(value) if rounded else round(value, 7)
        self._recorder.write(event)
        # The device's own lane, as it worked; the loop's lane shows how the step was queued.
        self._recorder.write_span("step", self._device, "device", batch, begun, times.busy)


def _ends(span: Span) -> Stretch:
    return span.start, span.start + span.seconds


def _length(stretch: Stretch) -> float:
    return stretch[1] - stretch[0]


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 7) for name, value in seconds.items()}
