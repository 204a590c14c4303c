"""Japanese, written in Latin letters by cutlet, which needs a dictionary: the extra `ja`."""

import importlib
from functools import cache
from typing import Protocol

from myxtts.config import TextConfig
from myxtts.errors import UserError
from myxtts.languages import Language


class _Romaniser(Protocol):
    def romaji(self, text: str) -> str: ...


@cache
def _romaniser() -> _Romaniser:
    try:
        cutlet = importlib.import_module("cutlet")
    except ImportError as error:
        raise UserError(
            f"Japanese needs {error.name}, which is not installed",
            'pip install "myxtts[ja]"',
        ) from None
    romaniser: _Romaniser = cutlet.Cutlet()
    return romaniser


def clean(text: str, _: TextConfig) -> str:
    """Romaji in lower case."""
    return _romaniser().romaji(text).lower()


LANGUAGE = Language(code="ja", name="Japanese", limit=71, clean=clean)
