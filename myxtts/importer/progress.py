"""How far writing is: a bar on a terminal; elsewhere a line for every tenth of what is large.

Bytes are those of the files that are written.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator

Say = Callable[[str], None]
Done = Callable[[int], None]
TENTHS = 10
LARGE = 200_000_000  # Bytes; less is there before anybody asks.


@contextlib.contextmanager
def show_bytes(total: int, say: Say) -> Iterator[Done]:
    """Gives what is to be told of every tensor's bytes."""
    if sys.stderr is not None and sys.stderr.isatty():
        with _bar(total) as done:
            yield done
    else:
        yield _lines(total, say if total >= LARGE else lambda _line: None)


@contextlib.contextmanager
def _bar(total: int) -> Iterator[Done]:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
    )

    columns = ("writing", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)


def _lines(total: int, say: Say) -> Done:
    so_far = 0

    def done(count: int) -> None:
        nonlocal so_far
        before, so_far = so_far, so_far + count
        if so_far * TENTHS // max(total, 1) > before * TENTHS // max(total, 1):
            say(f"written {so_far / 1e6:.0f} of {total / 1e6:.0f} MB")

    return done
