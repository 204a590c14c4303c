"""Long text into pieces that the model can speak, cut where a reader would breathe."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from myxtts.errors import UserError
from myxtts.languages import Language, find_language

_CLOSING = "[\"'”’»›)\\]」』】）》]*"
# Marks that also stand inside words and numbers end a sentence only before white space;
# those of Chinese, Japanese and Devanagari need none.
_END = re.compile(rf"[.!?…؟۔]+{_CLOSING}(?=\s|$)|[。！？．｡।॥]+{_CLOSING}|\n+")
_CLAUSE = re.compile(r"[,;:،؛](?=\s)|[、，；：،؛]|\s[-–—](?=\s)")
_SPACE = re.compile(r"\s+")
_LAST_WORD = re.compile(r"\S+\Z")
_LOOK_BACK = 24  # Characters; no abbreviation of a language file is longer.


def split_sentences(text: str, language: str, limit: int | None = None) -> list[str]:
    """Pieces of at most `limit` characters (the language's own if None), in order, nothing lost.

    Whole sentences are packed together; one over the limit is cut behind a comma, else at
    a space, else between two characters.
    """
    facts = find_language(language)
    size = facts.limit if limit is None else limit
    if size < 1:
        raise UserError(f"a limit of {size} characters leaves no text", "write 1 or more")
    text, pieces = text.rstrip(), []
    start = _next_word(text, 0)
    while start < len(text):
        end = _cut(text, start, size, facts)
        pieces.append(text[start:end].rstrip())
        start = _next_word(text, end)
    return pieces


def _next_word(text: str, place: int) -> int:
    spaces = _SPACE.match(text, place)
    return spaces.end() if spaces else place


def _cut(text: str, start: int, size: int, language: Language) -> int:
    """Where the piece that begins at `start` ends."""
    if len(text) - start <= size:
        return len(text)
    # One character more is seen, so that a break right behind the piece counts.
    window = text[start : start + size + 1]
    for ends in (_sentence_ends(window, language), _clause_ends(window), _word_ends(window)):
        fitting = [end for end in ends if 0 < end <= size]
        if fitting:
            return start + fitting[-1]
    return start + _between_characters(window, size)


def _sentence_ends(window: str, language: Language) -> Iterator[int]:
    for match in _END.finditer(window):
        if match.end() < len(window) and _ends_sentence(window, match, language):
            yield match.end()


def _ends_sentence(window: str, match: re.Match[str], language: Language) -> bool:
    if not match[0].startswith(".") or len(match[0]) > 1:
        return True
    last = _LAST_WORD.search(window[max(0, match.start() - _LOOK_BACK) : match.start()])
    word = (last[0] if last else "").lower().lstrip("\"'“‘«(")
    if word + "." in _dotted(language):
        return False
    if language.ordinal_dot and word.isdecimal():
        return False
    initial = len(word) == 1 and word.isalpha() and unicodedata.category(word) == "Ll"
    return not initial


@cache
def _dotted(language: Language) -> frozenset[str]:
    return frozenset([*language.abbreviations, *language.dotted])


def _clause_ends(window: str) -> Iterator[int]:
    yield from (match.end() for match in _CLAUSE.finditer(window))


def _word_ends(window: str) -> Iterator[int]:
    yield from (match.start() for match in _SPACE.finditer(window))


def _between_characters(window: str, size: int) -> int:
    """The last place up to `size` that parts no letter from its marks, if there is one."""
    for place in range(size, 0, -1):
        if not unicodedata.combining(window[place]) and window[place] not in "\u200c\u200d":
            return place
    return size
