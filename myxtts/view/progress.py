"""How far a count is: a bar on a terminal, a line for every tenth where there is none."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TimeRemainingColumn,
)

Say = Callable[[str], None]
Advance = Callable[[int], None]
TENTHS = 10
MB = 10**6


class Work(NamedTuple):
    """What is counted, in words: "decoding", "decoded", "clips"."""

    doing: str
    did: str
    unit: str


class Tenths:
    """Says when another tenth of a whole is done."""

    def __init__(self, total: int, begun: int = 0) -> None:
        self.total = total
        self.done = begun

    def add(self, count: int) -> bool:
        """Takes what is done by now, and says whether it ends a tenth."""
        before = self._tenth
        self.done += count
        return self._tenth > before

    @property
    def _tenth(self) -> int:
        return self.done * TENTHS // max(self.total, 1)


@contextlib.contextmanager
def counted(work: Work, total: int, begun: int, say: Say) -> Iterator[Advance]:
    """Gives what is to be told of every count; a `total` in MB is counted in bytes."""
    if sys.stderr is not None and sys.stderr.isatty():
        with _bar(work, total, begun) as advance:
            yield advance
    else:
        yield _lines(work, Tenths(total, begun), say)


@contextlib.contextmanager
def _bar(work: Work, total: int, begun: int) -> Iterator[Advance]:
    count = DownloadColumn() if work.unit == "MB" else MofNCompleteColumn()
    columns = (work.doing, BarColumn(), count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=total, completed=begun)
        yield lambda done: progress.advance(task, done)


def _lines(work: Work, tenths: Tenths, say: Say) -> Advance:
    size = MB if work.unit == "MB" else 1

    def advance(count: int) -> None:
        if tenths.add(count):
            done, total = tenths.done / size, tenths.total / size
            say(f"{work.did} {done:.0f} of {total:.0f} {work.unit}")

    return advance
