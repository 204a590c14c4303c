"""Spans and counts of a run, one JSON line each, in the run folder.

Legend: times are seconds of `perf_counter` since the run's start. A line goes to the
kernel in one write, so a killed process loses at most the line it was writing.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from myxtts.errors import UserError

FILE = "telemetry.jsonl"

Clock = Callable[[], float]
SpanHook = Callable[["Span"], None]


class Span:
    """One stretch of work of one thread: a context manager that records itself on leaving."""

    __slots__ = ("batch", "device", "name", "outermost", "recorder", "seconds", "start", "thread")

    def __init__(self, recorder: "Recorder", name: str, device: str, batch: int | None) -> None:
        self.recorder = recorder
        self.name = name
        self.device = device
        self.batch = batch
        self.thread = ""
        self.outermost = True
        self.start = 0.0
        self.seconds = 0.0

    def __enter__(self) -> "Span":
        self.recorder.enter(self)
        self.start = self.recorder.now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.seconds = self.recorder.now() - self.start
        self.recorder.leave(self)


class Recorder:
    """Collects spans from any thread; with a file, writes each one at once."""

    def __init__(self, file: int | None = None, clock: Clock = time.perf_counter) -> None:
        self._file = file
        self._clock = clock
        self._zero = clock()
        self._open = threading.local()
        self.on_span: SpanHook | None = None
        """Called with every finished span, in the thread that ran it."""
        self.on_written: Callable[[float], None] | None = None
        """Called with the seconds that a line took, where no open span holds them."""

    def now(self) -> float:
        """Seconds since the run's start."""
        return self._clock() - self._zero

    def span(self, name: str, device: str = "", batch: int | None = None) -> Span:
        """Times the `with` block as `name` on `device`; no device means the host."""
        return Span(self, name, device, batch)

    def count(self, name: str, value: float, device: str = "") -> None:
        """Notes a quantity at this moment: queue depth, bytes moved."""
        self.write(
            {
                "kind": "count",
                "name": name,
                "device": device,
                "at": self._round(self.now()),
                "value": value,
            }
        )

    def write(self, event: Mapping[str, Any]) -> None:
        """One event, one line, one system call."""
        if self._file is None:
            return
        start = self.now()
        _write_line(self._file, event)
        if self.on_written and not getattr(self._open, "depth", 0):
            self.on_written(self.now() - start)

    def close(self) -> None:
        """Closes the file; spans after this are timed and not written."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def enter(self, span: Span) -> None:
        """Called by a span on entering."""
        depth = getattr(self._open, "depth", 0)
        span.outermost = depth == 0
        self._open.depth = depth + 1

    def leave(self, span: Span) -> None:
        """Called by a span on leaving."""
        self._open.depth -= 1
        span.thread = threading.current_thread().name
        if self.on_span:
            self.on_span(span)
        self.write_span(span.name, span.device, span.thread, span.batch, span.start, span.seconds)

    def write_span(
        self,
        name: str,
        device: str,
        thread: str,
        batch: int | None,
        start: float,
        seconds: float,
    ) -> None:
        """A span that somebody else has timed."""
        self.write(
            {
                "kind": "span",
                "name": name,
                "device": device,
                "thread": thread,
                "batch": batch,
                "start": self._round(start),
                "seconds": self._round(seconds),
            }
        )

    @staticmethod
    def _round(seconds: float) -> float:
        return round(seconds, 7)


def open_recorder(folder: Path, devices: Mapping[str, list[str]]) -> Recorder:
    """A recorder that appends to the run folder's file, its first line saying what runs where."""
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise UserError(
            f"the run folder {folder} cannot be written ({error.strerror})",
            "name another one: telemetry.runs=FOLDER",
        ) from error
    recorder = Recorder(file)
    recorder.write({"kind": "run", "version": 1, "started": time.time(), "devices": devices})
    return recorder


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns what a line of another shape does to its reader into a user's error."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UserError(f"{path} is no telemetry of this version ({what})") from error


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a run; the last line may be torn by a kill, any other torn line is an error."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    torn = len(lines) - 1  # A whole file ends in a newline: behind it there is nothing.
    for number, line in enumerate(lines, start=1):
        try:
            if line:
                yield _event(line)
        except (ValueError, RecursionError) as error:
            if number <= torn:
                raise UserError(f"{path}:{number}: not a telemetry line ({error})") from error


def _event(line: bytes) -> dict[str, Any]:
    event = json.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
        raise ValueError("no JSON object with a kind")  # noqa: TRY004  A fault of the file.
    return event


def _write_line(file: int, event: Mapping[str, Any]) -> None:
    line = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    data = line.encode() + b"\n"
    try:
        written = os.write(file, data)
    except OSError as error:
        raise UserError(
            f"telemetry cannot be written ({error.strerror})", "free some space and resume the run"
        ) from error
    if written < len(data):
        raise UserError(
            "telemetry cannot be written (the disk is full)", "free some space and resume the run"
        )
