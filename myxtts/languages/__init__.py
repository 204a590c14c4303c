"""What is known of each language: one file each, found by its name.

`xy.py` (or a folder `xy`) here that sets LANGUAGE is the language `xy`; no list names it again.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Literal

from myxtts.config import TextConfig
from myxtts.errors import UserError


@dataclass(frozen=True)
class NumberWords:
    """How digits are said; what is None here, num2words says."""

    cardinal: Callable[[int], str] | None = None
    ordinal: Callable[[int], str] | None = None
    decimal: Callable[[str], str] | None = None
    """Takes the number as written, with a point: 12.50."""
    money: Callable[[float, str], str] | None = None
    """Takes an amount and GBP, USD or EUR."""
    cents_after: str = ", "
    """What num2words puts between the amount and its cents."""


@dataclass(frozen=True, eq=False)
class Language:
    """The facts that cleaning, splitting and tagging need."""

    code: str
    name: str
    limit: int
    """Characters that one piece of a long text may have."""
    tag: str = ""
    """The word in the vocabulary's tag, where it is not the code."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """Characters replaced before anything else."""
    joiners: str = ""
    """Invisible characters that carry meaning in this script, and so stay."""
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)
    dotted: tuple[str, ...] = ()
    """More words whose dot ends no sentence."""
    thousands: Literal[",", "."] = "."
    groups: str = "3"
    """Digits between two thousands separators, as the inside of a regular expression's braces."""
    decimals: bool = True
    ordinal_endings: tuple[str, ...] = ()
    """Endings after digits, in the order they are tried."""
    ordinal_dot: Literal["", "any", "last"] = ""
    """Whether a dot makes an ordinal: never, always, or only at the end of a word."""
    numbers: NumberWords = NumberWords()
    romanise: Callable[[str], str] | None = None
    """What happens to the text after all of the above."""
    clean: Callable[[str, TextConfig], str] | None = None
    """A whole cleaner, in the place of all of the above but `letters` and `joiners`."""

    @property
    def vocabulary_tag(self) -> str:
        """The token that opens a text in this language."""
        return f"[{self.tag or self.code}]"


def language_codes() -> tuple[str, ...]:
    """The languages there are files for."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@cache
def find_language(code: str) -> Language:
    """The language of a code; a region after a hyphen (zh-cn, pt-BR) is no part of it."""
    plain = code.strip().replace("_", "-").split("-")[0].lower()
    known = language_codes()
    if plain not in known:
        near = get_close_matches(plain, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UserError(
            f"there is no language {code!r}",
            f"{meant}there are {', '.join(known)}; docs/languages.md says how to add one",
        )
    language: Language = importlib.import_module(f"{__name__}.{plain}").LANGUAGE
    return language
