"""What is true of text in every language: one way to write a character, and none unseen."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

# Pictures, and the invisible characters that join and colour them.
_PICTURES = re.compile(
    "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\u20e3\ufe00-\ufe0f"
    "\U0001f000-\U0001faff\U000e0020-\U000e007f\U000e0100-\U000e01ef]"
)
_SPACES = re.compile(r"\s+")
# Surrogates, private use, unassigned; formats (directions, joiners, marks of order); controls.
_UNSEEN = {"Cs", "Co", "Cn", "Cf", "Cc"}


def one_space(text: str) -> str:
    """Runs of white space become one space, and none is left at the ends."""
    return _SPACES.sub(" ", text).strip()


def compose(text: str) -> str:
    """One character where a letter and its mark have one together (NFC)."""
    return unicodedata.normalize("NFC", text)


def described(character: str) -> str:
    """The character, its code point and its name, for a message."""
    name = unicodedata.name(character, "without a name")
    return f"{character if character.isprintable() else ''} U+{ord(character):04X} {name}".strip()


def tidy(text: str, letters: Mapping[str, str], joiners: str) -> tuple[str, Counter[str]]:
    """Composed text without controls, directions and pictures, and what was dropped of it."""
    text = "".join(letters.get(character, character) for character in compose(text))
    dropped: Counter[str] = Counter()
    kept = []
    for character in _SPACES.sub(" ", text):
        if character in joiners or not _is_dropped(character):
            kept.append(character)
        else:
            dropped[character] += 1
    # What stood between two characters may be gone, and they compose now.
    return one_space(compose("".join(kept))), dropped


def _is_dropped(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    return unicodedata.category(character) in _UNSEEN or bool(_PICTURES.match(character))
