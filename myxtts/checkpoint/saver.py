"""Saves while the loop goes on: the loop only copies, a thread writes.

The copy is in the host's memory, so later steps do not change what is being written.
"""

import contextlib
import queue
import threading
from collections.abc import Iterator
from types import TracebackType

import psutil

from myxtts.checkpoint.errors import sized
from myxtts.checkpoint.finding import Say
from myxtts.checkpoint.folder import Checkpoints
from myxtts.checkpoint.state import State
from myxtts.checkpoint.stored import Stored
from myxtts.errors import UserError
from myxtts.pipeline.ring import LOOK_UP_SECONDS, run_ahead
from myxtts.telemetry.record import Recorder

HOST_SPARE = 1 << 30  # Bytes of host memory left free beside a copy.

_Queue = queue.SimpleQueue[State | None]


class Saver:
    """Takes states and writes them, one at a time, in a thread of its own.

    An error of the writing is raised by the next call. Leaving the `with` block waits for what
    is under way, so a run that ends in good order has saved what it was told to.
    """

    def __init__(self, checkpoints: Checkpoints, recorder: Recorder, say: Say) -> None:
        self._checkpoints = checkpoints
        self._recorder = recorder
        self._say = say
        self._queued: _Queue = queue.SimpleQueue()
        self._owed = 0
        self._told = False
        self._stop = threading.Event()
        writing = self._write(threading.current_thread())
        self._written = run_ahead(writing, 1, thread="saver", stop=self._stop)

    def save(self, state: State) -> None:
        """Copies the state to the host and returns; first waits for the save before it."""
        self.settle()
        if not self._fits(state):
            with self._recorder.span("save"):
                self._checkpoints.save(state)
            return
        with self._recorder.span("copy"):
            copied = state.on_host()
        self._queued.put(copied)
        self._owed += 1

    def settle(self) -> Stored | None:
        """Waits until the disk has what was given; the checkpoint that it waited for."""
        saved = None
        while self._owed:
            self._owed -= 1
            saved = next(self._written)
        return saved

    def __enter__(self) -> "Saver":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.settle()
        except UserError as late:
            if error is None:
                raise
            self._say(f"⚠ {late.problem}")  # The first error is the one shown.
        finally:
            self._stop.set()
            self._queued.put(None)  # Wakes the writer.
            self._written.__exit__(kind, error, trace)

    def _fits(self, state: State) -> bool:
        free = psutil.virtual_memory().available
        if free >= state.bytes + HOST_SPARE:
            return True
        if not self._told:
            self._say(
                f"⚠ the host has {sized(free)} free, a copy of the state takes "
                f"{sized(state.bytes)}: steps wait while checkpoints are written"
            )
        self._told = True
        return False

    def _write(self, loop: threading.Thread) -> Iterator[Stored]:
        while not self._stop.is_set() and loop.is_alive():
            with contextlib.suppress(queue.Empty):
                state = self._queued.get(timeout=LOOK_UP_SECONDS)
                if state:
                    with self._recorder.span("save"):
                        saved = self._checkpoints.save(state)
                    del state  # Or the copy would stay until the next one comes.
                    yield saved
