"""Ctrl-C and SIGTERM: the first ends the run after its step, a second at once."""

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
AT_ONCE = 130


class Stop:
    """Whether the run was asked to end; catches the signals while its block runs."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.asked = False
        self._say = say
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> "Stop":
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            # What was being saved is half written and will be swept; the one before is whole.
            os._exit(AT_ONCE)
        self.asked = True
        name = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
        self._say(f"{name}: ending after this step and saving; again to leave at once")
