"""The phrases: few words in fixed forms, so that a small model meets each word often.

The English words are those that recognisers understood from a synthetic voice; phrases with
`the`, `is` and `are` were understood better than bare rows of nouns. The Persian ones are unjudged.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import product

Phrase = tuple[str, ...]
Form = tuple[tuple[str, ...], ...]

COLOUR = ("blue", "black", "yellow", "brown", "orange", "purple", "silver")
OBJECT = (
    "table",
    "window",
    "river",
    "station",
    "picture",
    "monkey",
    "kitchen",
    "house",
    "mountain",
    "village",
    "computer",
    "machine",
    "island",
    "camera",
)
NUMBER = ("five", "six", "seven", "twelve", "twenty")
PLURAL = ("windows", "pictures", "people", "tables", "machines", "mountains")
VERB = ("close", "find", "remember", "describe", "consider", "paint")
PLACE = ("behind", "under", "near", "inside", "beside")
ADVERB = ("tomorrow", "quickly", "together")
THE, IS, ARE = ("the",), ("is",), ("are",)

# Numbers, things, colours, and three verbs: I have, I saw, I bought.
FA_NUMBER = ("دو", "سه", "چهار", "پنج", "شش", "هفت")
FA_OBJECT = ("کتاب", "خانه", "میز", "ماشین", "درخت", "پنجره", "توپ", "کیف")
FA_COLOUR = ("سبز", "آبی", "زرد", "سیاه", "سفید", "قرمز")
FA_VERB = ("دارم", "دیدم", "خریدم")

FORMS: dict[str, tuple[Form, ...]] = {
    "en": (
        (VERB, THE, COLOUR, OBJECT),
        (VERB, THE, OBJECT, ADVERB),
        (NUMBER, PLURAL, ARE, PLACE, THE, OBJECT),
        (THE, OBJECT, IS, PLACE, THE, OBJECT),
        (THE, COLOUR, OBJECT, IS, PLACE, THE, OBJECT),
    ),
    "fa": (
        (FA_NUMBER, FA_OBJECT, FA_COLOUR),
        (FA_OBJECT, FA_COLOUR, FA_VERB),
        (FA_NUMBER, FA_OBJECT, FA_COLOUR, FA_VERB),
    ),
}


def all_phrases(language: str) -> list[Phrase]:
    """Every phrase of a language, in a fixed order; nothing stands beside itself."""
    phrases = (phrase for form in FORMS[language] for phrase in product(*form))
    return [phrase for phrase in phrases if len(set(phrase) - {"the"}) >= len(phrase) - 2]


def neighbours(language: str, phrase: Phrase) -> Iterator[Phrase]:
    """The phrases that differ in one word."""
    for form in FORMS[language]:
        if len(form) == len(phrase) and all(
            w in slot for w, slot in zip(phrase, form, strict=True)
        ):
            for place, slot in enumerate(form):
                for word in slot:
                    yield (*phrase[:place], word, *phrase[place + 1 :])


def split(
    language: str, train: int, held_out: int, rng: random.Random
) -> tuple[Sequence[Phrase], Sequence[Phrase]]:
    """Phrases to learn, and phrases that are never heard but are one word away from one that is."""
    drawn = all_phrases(language)
    rng.shuffle(drawn)
    learned = set(drawn[:train])
    unheard = (
        phrase
        for phrase in drawn[train:]
        if any(near in learned for near in neighbours(language, phrase))
    )
    return drawn[:train], [phrase for phrase, _ in zip(unheard, range(held_out), strict=False)]
