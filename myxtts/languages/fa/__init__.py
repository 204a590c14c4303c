"""Persian: one spelling for each word, half-spaces, and everything written out as it is said."""

from myxtts.config import TextConfig
from myxtts.languages import Language
from myxtts.languages.fa.amounts import write_amounts
from myxtts.languages.fa.calendar import write_dates_and_times
from myxtts.languages.fa.latin import spell_latin, write_addresses
from myxtts.languages.fa.letters import unify_letters
from myxtts.languages.fa.numbers import write_numbers
from myxtts.languages.fa.spacing import space_marks, space_words, write_symbols


def clean(text: str, config: TextConfig) -> str:
    """Each step leaves text that it would leave alone, so that cleaning twice equals once."""
    text = unify_letters(text)
    text = write_addresses(text)
    text = write_dates_and_times(text)
    text = write_amounts(text)
    text = write_numbers(text)
    text = write_symbols(text)
    text = spell_latin(text, config.spell_latin).lower()
    text = space_marks(text)
    return space_words(text, join_suffixes=config.join_suffixes)


LANGUAGE = Language(
    code="fa",
    name="Persian",
    # Not measured on a release, which has no Persian; Arabic, written as densely, has 166.
    limit=166,
    # Some editors and the old Persian code pages write the half-space with these.
    letters={"\u200b": "\u200c", "¬": "\u200c"},
    joiners="\u200c",
    clean=clean,
)
