"""What of a corpus the model could not read: characters without a token, texts too long."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from myxtts.text.characters import described
from myxtts.text.tokenizer import Tokenizer

PLACES_KEPT = 5


@dataclass
class UnknownCharacter:
    """A character without a token, how often it is, and where first: (text, place in it)."""

    character: str
    count: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{described(self.character)}: {self.count}×"


@dataclass(frozen=True)
class Audit:
    """Findings over a corpus; a text is named by its number, from 0."""

    lengths: list[int]
    """Tokens of each text."""
    too_long: list[int]
    unknown: Mapping[str, UnknownCharacter]
    """The commonest first."""


def audit(tokenizer: Tokenizer, texts: Iterable[tuple[str, str]], limit: int) -> Audit:
    """Reads (cleaned text, language) pairs; `limit` is the most tokens that one may have."""
    lengths: list[int] = []
    found: dict[str, UnknownCharacter] = {}
    for number, (text, language) in enumerate(texts):
        lengths.append(len(tokenizer.encode(text, language)))
        for place, character in tokenizer.unknown(text):
            entry = found.setdefault(character, UnknownCharacter(character))
            entry.count += 1
            if len(entry.places) < PLACES_KEPT:
                entry.places.append((number, place))
    too_long = [number for number, length in enumerate(lengths) if length > limit]
    commonest = sorted(found.items(), key=lambda item: (-item[1].count, item[0]))
    return Audit(lengths, too_long, dict(commonest))
