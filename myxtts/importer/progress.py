"""How far reading and writing is: a bar on a terminal, a line for every tenth where there is none.

Bytes are those of the files that are written.
"""

from contextlib import AbstractContextManager

from myxtts.view.progress import Advance as Done
from myxtts.view.progress import Say, Work, counted

__all__ = ["Done", "Say", "show_bytes"]

WRITING = Work("writing", "written", "MB")


def show_bytes(total: int, say: Say) -> AbstractContextManager[Done]:
    """Gives what is to be told of every tensor's bytes."""
    return counted(WRITING, total, 0, say)
