"""How far decoding is: a bar on a terminal, a line for every tenth where there is none."""

from collections.abc import Iterable

from myxtts.view.progress import Say, Work, counted

__all__ = ["Say", "show_progress"]

DECODING = Work("decoding", "decoded", "clips")


def show_progress(done: Iterable[int], total: int, begun: int, say: Say) -> None:
    """Draws the counts of clips as they are done and shows their sum."""
    with counted(DECODING, total, begun, say) as advance:
        for count in done:
            advance(count)
