"""Standard output that takes no more is a user's error, whoever was writing to it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

from myxtts.errors import UserError


class OutputError(UserError):
    """A full disk, or a reader that has gone."""

    exit_code = 1

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"stopped: standard output cannot be written ({error.strerror})",
            "send it to a file with room, or nowhere: > /dev/null",
        )


@contextlib.contextmanager
def checked_output() -> Iterator[None]:
    """Makes `sys.stdout` raise an `OutputError`; a closed one stays closed and takes nothing."""
    stream = sys.stdout
    if stream is None:
        yield
        return
    sys.stdout = cast("TextIO", _Checked(stream))
    try:
        yield
        sys.stdout.flush()  # What typer has printed may wait in the buffer still.
    except OutputError:
        # Python would write the rest when it ends, and tell of that in a way of its own.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        raise
    finally:
        sys.stdout = stream


class _Checked:
    """A stream in all but its errors; typer and rich know nothing of ours and would mask them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise OutputError(error) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise OutputError(error) from error
