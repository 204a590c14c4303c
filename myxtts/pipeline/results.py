"""Reads each step's results a few steps late, without holding up the step after it.

On a GPU a step returns when it is queued, and reading a value waits for everything
queued by then: so a thread of its own reads, and the loop only hears of it later.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import NamedTuple

import tensorflow as tf

from myxtts.pipeline.ring import LOOK_UP_SECONDS, run_ahead
from myxtts.telemetry.record import Recorder

_Queued = tuple[int, Mapping[str, tf.Tensor]]


class StepResult(NamedTuple):
    """A finished step: its values on the host, and when they were there."""

    step: int
    values: dict[str, float]
    at: float
    """Seconds since the run's start."""


class LateResults:
    """Takes results as they are queued and gives back those that are finished."""

    def __init__(self, lag: int, recorder: Recorder) -> None:
        self.lag = lag
        self._recorder = recorder
        self._queued: queue.SimpleQueue[_Queued | None] = queue.SimpleQueue()
        self._owed = 0
        self._stop = threading.Event()
        reading = _read(self._queued, recorder.now, self._stop, threading.current_thread())
        self._finished = run_ahead(reading, lag + 1, thread="results", stop=self._stop)

    def put(self, step: int, results: Mapping[str, tf.Tensor]) -> list[StepResult]:
        """Queues a step's scalars; gives those of the steps that `lag` has passed over."""
        self._queued.put((step, results))
        self._owed += 1
        return self._collect(self.lag)

    def settle(self) -> list[StepResult]:
        """Waits for every step queued so far."""
        return self._collect(0)

    def __enter__(self) -> "LateResults":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._queued.put(None)  # Wakes the reader.
        self._finished.__exit__(kind, error, trace)

    def _collect(self, may_wait: int) -> list[StepResult]:
        late = []
        while self._owed > may_wait:
            with self._recorder.span("results"):
                late.append(next(self._finished))
            self._owed -= 1
        return late


def _read(
    queued: queue.SimpleQueue[_Queued | None],
    now: Callable[[], float],
    stop: threading.Event,
    loop: threading.Thread,
) -> Iterator[StepResult]:
    while not stop.is_set() and loop.is_alive():
        with contextlib.suppress(queue.Empty):
            entry = queued.get(timeout=LOOK_UP_SECONDS)
            if entry:
                step, results = entry
                values = {name: float(value.numpy()) for name, value in results.items()}
                yield StepResult(step, values, now())
