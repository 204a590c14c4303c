"""How far decoding is: a bar on a terminal, a line for every tenth where there is none."""

import sys
from collections.abc import Callable, Iterable

Say = Callable[[str], None]
TENTHS = 10


def show_progress(done: Iterable[int], total: int, begun: int, say: Say) -> None:
    """Draws the counts of clips as they are done and shows their sum."""
    if sys.stderr.isatty():
        _bar(done, total, begun)
    else:
        _lines(done, total, begun, say)


def _bar(done: Iterable[int], total: int, begun: int) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TimeRemainingColumn,
    )

    columns = ("decoding", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=total, completed=begun)
        for count in done:
            progress.advance(task, count)


def _lines(done: Iterable[int], total: int, begun: int, say: Say) -> None:
    so_far, told = begun, begun * TENTHS // max(total, 1)
    for count in done:
        so_far += count
        if so_far * TENTHS // total > told:
            told = so_far * TENTHS // total
            say(f"decoded {so_far} of {total} clips")
