"""Runs a generator ahead of its consumer in a thread: the only thread of the pipeline.

The ring has `depth` slots. The producer takes a free slot before it makes an item, so at
most `depth` items are finished or in the making besides the one in the consumer's hands.
"""

import contextlib
import queue
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

from myxtts.devices import explicit_moves
from myxtts.telemetry.record import Recorder

T = TypeVar("T")

LOOK_UP_SECONDS = 0.25
"""How often a waiting side looks whether the other one still lives."""
JOIN_SECONDS = 30.0
"""How long a stop waits for the item in the making."""


class ProducerStuckError(RuntimeError):
    """The producer did not come back from its source in time to be stopped."""


class ConsumerDiedError(RuntimeError):
    """The thread that took the items has ended, and so has their making."""


class ProducerDiedError(RuntimeError):
    """The producer's thread ended without a word: killed from outside."""


class _Filled(NamedTuple, Generic[T]):
    item: T | None = None
    ended: bool = False
    error: BaseException | None = None


class _Ring(Generic[T]):
    """What both threads share; neither holds the other through it, so both can be collected."""

    def __init__(self, depth: int, stop: threading.Event) -> None:
        # SimpleQueue is C and reentrant: an interrupt or a kill leaves no lock behind.
        self.free: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.filled: queue.SimpleQueue[_Filled[T]] = queue.SimpleQueue()
        self.stop = stop
        self.full = threading.Event()
        self.consumer: threading.Thread | None = None
        for _ in range(depth):
            self.free.put(None)

    def wait_for_slot(self, recorder: Recorder, number: int) -> bool:
        """Takes a free slot; False when there is nobody to fill it for."""
        with contextlib.suppress(queue.Empty):
            self.free.get_nowait()
            return not self.stop.is_set()
        self.full.set()
        with recorder.span("blocked", batch=number):
            while not self.stop.is_set() and self._consumer_lives():
                with contextlib.suppress(queue.Empty):
                    self.free.get(timeout=LOOK_UP_SECONDS)
                    return not self.stop.is_set()
        return False

    def _consumer_lives(self) -> bool:
        return self.consumer is None or self.consumer.is_alive()

    def drain(self) -> None:
        """Lets go of every waiting item, and so of the device memory it holds."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.filled.get_nowait()


class RunAhead(Iterator[T], Generic[T]):
    """The consumer's end: iterate, and close it (or leave its `with`) to stop the producer."""

    def __init__(
        self,
        items: Iterable[T],
        depth: int,
        recorder: Recorder,
        thread: str,
        stop: threading.Event,
    ) -> None:
        if depth < 1:
            raise ValueError(f"a ring needs at least one slot, not {depth}")
        self._recorder = recorder
        self._taken = 0
        self._queue = f"queue of {thread}"
        self._end: _Filled[T] | None = None
        self._ring: _Ring[T] = _Ring(depth, stop)
        self._thread = threading.Thread(
            target=_produce, args=(items, self._ring, recorder), name=thread, daemon=True
        )
        # Runs also when the consumer is merely forgotten, and before the interpreter ends.
        self._forgotten = weakref.finalize(self, _stop, self._ring, self._thread)
        self._thread.start()

    def __next__(self) -> T:
        if self._end:
            return self._finish(self._end)
        self._ring.consumer = threading.current_thread()
        with self._recorder.span("wait", batch=self._taken):
            filled = self._take()
        if filled.ended:
            self._end = filled
            return self._finish(filled)
        self._ring.free.put(None)
        self._taken += 1
        self._recorder.count(self._queue, self.waiting)
        return filled.item  # type: ignore[return-value]  # Only the end has no item.

    @property
    def waiting(self) -> int:
        """How many finished items wait in the ring now."""
        return self._ring.filled.qsize()

    def fill(self, seconds: float) -> bool:
        """Waits until the ring is full or the source has ended, at most `seconds`."""
        return self._ring.full.wait(seconds)

    def close(self) -> None:
        """Stops the producer and waits for it: event, drain, join."""
        stuck = self._try_to_stop()
        if stuck:
            raise ProducerStuckError(stuck)

    def _try_to_stop(self) -> str:
        """Stops the producer; what to tell when it does not come back."""
        self._end_thread()
        if not self._thread.is_alive() or self._thread is threading.current_thread():
            return ""
        return (
            f"the thread {self._thread.name} did not stop within {JOIN_SECONDS:.0f} s: "
            f"its source is stuck making item {self._taken}"
        )

    def __enter__(self) -> "RunAhead[T]":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif stuck := self._try_to_stop():
            error.add_note(stuck)  # The first error is the one shown.

    def _take(self) -> _Filled[T]:
        while True:
            # Asked before looking: what a thread put before it died is still found.
            alive = self._thread.is_alive()
            try:
                return self._ring.filled.get(timeout=LOOK_UP_SECONDS if alive else 0.001)
            except queue.Empty:
                if not alive:
                    return _Filled(ended=True, error=self._silent_end())

    def _silent_end(self) -> BaseException | None:
        if self._ring.stop.is_set():
            return None
        return ProducerDiedError(f"the thread {self._thread.name} was killed from outside")

    def _end_thread(self) -> None:
        # Not through the finaliser, which works only once: a kill inside would use it up.
        _stop(self._ring, self._thread)
        self._forgotten.detach()

    def _finish(self, end: _Filled[T]) -> T:
        self._end_thread()
        if end.error is not None:
            raise end.error  # It carries the producer's own traceback.
        raise StopIteration


def run_ahead(
    items: Iterable[T],
    depth: int = 3,
    recorder: Recorder | None = None,
    thread: str = "producer",
    stop: threading.Event | None = None,
) -> RunAhead[T]:
    """Starts making `items` in a thread, at most `depth` ahead of the one in use.

    A source that waits by itself watches `stop`, which is set when it is no longer wanted.
    """
    return RunAhead(items, depth, recorder or Recorder(), thread, stop or threading.Event())


def _produce(items: Iterable[T], ring: _Ring[T], recorder: Recorder) -> None:
    error: BaseException | None = None
    try:
        with explicit_moves():
            _fill(items, ring, recorder)
    except BaseException as raised:  # noqa: BLE001  Not swallowed: the consumer raises it again.
        error = raised
    finally:
        ring.filled.put(_Filled(ended=True, error=error))
        ring.full.set()


def _fill(items: Iterable[T], ring: _Ring[T], recorder: Recorder) -> None:
    source, number = iter(items), 0
    try:
        while ring.wait_for_slot(recorder, number):
            try:
                item = next(source)
            except StopIteration:
                return
            ring.filled.put(_Filled(item))
            del item  # Or this frame would hold one item more than the ring.
            number += 1
        if not ring.stop.is_set():
            # Never a quiet end: another thread may take what is left, and must learn of it.
            raise ConsumerDiedError("the thread that took the items has ended, and so the making")
    finally:
        # Here, in the thread that ran it: a generator's device scopes belong to its thread.
        close = getattr(source, "close", None)
        if close:
            close()


def _stop(ring: _Ring[T], thread: threading.Thread) -> None:
    ring.stop.set()
    ring.free.put(None)  # Wakes a producer that waits for a slot.
    ring.drain()
    # Not alive: it has ended, or a kill came before it was started.
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join(JOIN_SECONDS)
    ring.drain()
