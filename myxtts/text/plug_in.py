"""The user's own function of (text, language): vowels for Persian, phonemes for any language."""

import importlib
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType

from myxtts.errors import UserError

PlugInFunction = Callable[[str, str], object]


class _ForeignCode:
    """Around code that is not ours, whose error may be any: it comes out with the place named."""

    def __init__(self, doing: str) -> None:
        self.doing = doing

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, UserError):
            last = traceback.extract_tb(trace)[-1]
            raise UserError(
                f"text.plug_in: {self.doing} raised {type(error).__name__}: {error}",
                f"raised at {Path(last.filename).name}:{last.lineno}; "
                "mend it there, or leave text.plug_in out",
            ) from error


@cache
def load_plug_in(name: str) -> PlugInFunction:
    """The function behind "module:function"."""
    module, _, function = name.partition(":")
    with _ForeignCode(f"importing {module}"):
        imported = importlib.import_module(module)
    found = getattr(imported, function, None)
    if not callable(found):
        raise UserError(
            f"text.plug_in: {module} has no function {function}",
            "write module:function; the function takes (text, language) and returns the text",
        )
    loaded: PlugInFunction = found
    return loaded


def plugged(name: str, text: str, language: str) -> str:
    """What the plug-in makes of cleaned text."""
    function = load_plug_in(name)
    with _ForeignCode(f"{name}({text[:40]!r}, {language!r})"):
        written = function(text, language)
    if not isinstance(written, str) or (text and not written.strip()):
        raise UserError(
            f"text.plug_in: {name} returned {str(written)[:40]!r}, which is no text",
            "return the text with vowels or phonemes, or the same text for other languages",
        )
    return written
