"""Digits into words: thousands, money, decimals, ordinals and whole numbers, in that order."""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from num2words import num2words

from myxtts.languages import Language

CURRENCIES = {"£": "GBP", "$": "USD", "€": "EUR"}
LONGEST = 33  # Digits; a longer run is no quantity, and is read digit by digit.

# What num2words raises for a number, an ordinal or a currency that it has no words for.
UNSAID = (NotImplementedError, ArithmeticError, LookupError, TypeError, ValueError)

Say = Callable[[re.Match[str]], str]


def numbers_to_words(text: str, language: Language) -> str:
    """The text without digits."""
    text = _thousands(language).sub(lambda m: m[0].replace(language.thousands, ""), text)
    # As in the reference, the first currency without words leaves the later ones alone.
    with suppress(*UNSAID):
        for symbol, currency in CURRENCIES.items():
            text = _money(symbol).sub(_say_money(language, currency), text)
    if language.decimals:
        text = re.sub(r"(?<![0-9])[0-9]+[.,][0-9]+", lambda m: _decimal(m[0], language), text)
    if ordinals := _ordinals(language):
        text = ordinals.sub(lambda m: _whole(m[1], language, ordinal=True), text)
    return re.sub(r"[0-9]+", lambda m: _whole(m[0], language), text)


@cache
def _thousands(language: Language) -> re.Pattern[str]:
    separator = re.escape(language.thousands)
    return re.compile(rf"\b[0-9]{{1,3}}(?:{separator}[0-9]{{{language.groups}}})+\b")


@cache
def _money(symbol: str) -> re.Pattern[str]:
    amount, sign = "[0-9.,]*[0-9]", re.escape(symbol)
    return re.compile(f"{sign}{amount}|(?<![0-9.,]){amount}{sign}")


@cache
def _ordinals(language: Language) -> re.Pattern[str] | None:
    endings = [re.escape(ending) for ending in language.ordinal_endings]
    if language.ordinal_dot:
        endings.append(r"\." if language.ordinal_dot == "any" else r"\.(?=\s|$)")
    return re.compile(f"(?<![0-9])([0-9]+)(?:{'|'.join(endings)})") if endings else None


def _say_money(language: Language, currency: str) -> Say:
    own = language.numbers.money

    def say(match: re.Match[str]) -> str:
        amount = float(re.sub(r"[^0-9.]", "", match[0].replace(",", ".")))
        if own:
            return own(amount, currency)
        said = str(num2words(amount, to="currency", currency=currency, lang=language.code))
        if amount.is_integer():  # Whole amounts go without ", zero cents".
            said = said.rpartition(language.numbers.cents_after)[0] or said
        return said

    return say


def _decimal(written: str, language: Language) -> str:
    say = language.numbers.decimal or (lambda w: str(num2words(float(w), lang=language.code)))
    if len(written) <= LONGEST:
        with suppress(*UNSAID):
            return say(written.replace(",", "."))
    whole, part = re.split("[.,]", written)
    # A pause for the point, as num2words has no words here (Hungarian, beyond thousandths).
    return f"{_digits(whole, language)}, {_digits(part, language)}"


def _whole(digits: str, language: Language, *, ordinal: bool = False) -> str:
    if len(digits) > LONGEST:
        return _digits(digits, language)
    if ordinal:
        say = language.numbers.ordinal or (
            lambda n: str(num2words(n, ordinal=True, lang=language.code))
        )
        with suppress(*UNSAID):
            return say(int(digits))
    return _cardinal(int(digits), language)


def _cardinal(number: int, language: Language) -> str:
    say = language.numbers.cardinal or (lambda n: str(num2words(n, lang=language.code)))
    with suppress(*UNSAID):
        return say(number)
    return _digits(str(number), language)


def _digits(written: str, language: Language) -> str:
    said = {digit: _cardinal(int(digit), language) for digit in set(written) if digit.isdecimal()}
    return " ".join(said[digit] for digit in written if digit in said)
