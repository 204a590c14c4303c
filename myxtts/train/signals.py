"""Ctrl-C and SIGTERM: the first ends the run after its step, a second at once."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import FrameType, TracebackType

from myxtts.pipeline import run_ahead

SIGNALS = (signal.SIGINT, signal.SIGTERM)
AT_ONCE = 130
WAKE = b"\0"


class Stop:
    """Whether the run was asked to end; catches the signals while its block runs.

    Python hears of signals between two of its own instructions, and of several only once: a long
    step would hold up the second. So a thread counts them where the system notes each at once.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.asked = False
        self._say = say
        self._held = ExitStack()

    def __enter__(self) -> "Stop":
        for number in SIGNALS:
            self._held.callback(signal.signal, number, signal.signal(number, self._heard))
        ours, systems = socket.socketpair()
        stop = threading.Event()
        systems.setblocking(False)
        for end in (ours, systems):
            self._held.callback(end.close)
        counting = run_ahead(_count(ours, stop), 1, thread="signals", stop=stop)
        self._held.callback(counting.close)
        self._held.callback(systems.send, WAKE)
        self._held.callback(stop.set)
        before = signal.set_wakeup_fd(systems.fileno(), warn_on_full_buffer=False)
        self._held.callback(signal.set_wakeup_fd, before)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if not self.asked:
            name = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
            self._say(f"{name}: ending after this step and saving; again to leave at once")
        self.asked = True


def _count(ours: socket.socket, stop: threading.Event) -> Iterator[None]:
    """Ends the process at the second signal; gives nothing."""
    heard = 0
    while not stop.is_set():
        for number in ours.recv(64):
            heard += number in SIGNALS
            if heard > 1:
                # What was being saved is half written and will be swept; the one before is whole.
                os._exit(AT_ONCE)
    yield from ()
