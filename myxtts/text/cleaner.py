"""A transcript as people write it into the text that is spoken and tokenized."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from myxtts.config import TextConfig
from myxtts.languages import Language, find_language
from myxtts.text.characters import compose, one_space, tidy
from myxtts.text.numbers import numbers_to_words
from myxtts.text.plug_in import plugged

PLAIN = TextConfig()


@dataclass(frozen=True)
class Cleaned:
    """Clean text, and the characters that were dropped on the way with how often."""

    text: str
    dropped: Mapping[str, int]


def clean(text: str, language: str, config: TextConfig = PLAIN) -> Cleaned:
    """Words without digits, symbols, controls and pictures; never raises for what a text holds."""
    facts = find_language(language)
    text, dropped = tidy(text, facts.letters, facts.joiners)
    text = facts.clean(text, config) if facts.clean else _by_tables(text, facts)
    text = one_space(compose(text))
    if config.plug_in:
        text = one_space(compose(plugged(config.plug_in, text, facts.code)))
    return Cleaned(text, dropped)


def clean_text(text: str, language: str, config: TextConfig = PLAIN) -> str:
    """The text of `clean` alone."""
    return clean(text, language, config).text


def _by_tables(text: str, language: Language) -> str:
    # The words for numbers are not lower-cased again (de "Komma", "Euro"): the released
    # weights learnt them so.
    text = compose(text.replace('"', "").lower())
    text = numbers_to_words(text, language)
    for pattern, word in _abbreviations(language):
        text = pattern.sub(word, text)
    for symbol, word in language.symbols.items():
        text = text.replace(symbol, f" {word} ")
    text = one_space(text)
    return language.romanise(text) if language.romanise else text


@cache
def _abbreviations(language: Language) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(rf"\b{re.escape(short)}" + ("" if short.endswith(".") else r"\b")), word)
        for short, word in language.abbreviations.items()
    )
