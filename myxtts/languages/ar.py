"""Arabic."""

from num2words import num2words

from myxtts.languages import Language, NumberWords

_DIGITS = dict(zip("٠١٢٣٤٥٦٧٨٩", "0123456789", strict=True))
_COINS = {
    "GBP": ("جنيه إسترليني", "بنس"),
    "USD": ("دولار", "سنت"),
    "EUR": ("يورو", "سنت"),
}


def money(amount: float, currency: str) -> str:
    """num2words 0.5.14 says riyals whatever the currency."""
    whole, cents = divmod(round(amount * 100), 100)
    note, coin = _COINS[currency]
    tail = f" و {num2words(cents, lang='ar')} {coin}" if cents else ""
    return f"{num2words(whole, lang='ar')} {note}{tail}"


LANGUAGE = Language(
    code="ar",
    name="Arabic",
    limit=166,
    # The reference leaves Arabic digits as they are, and so unread.
    letters={**_DIGITS, "٬": ".", "٫": ",", "٪": "%"},
    symbols={
        "&": "و",
        "@": "على",
        "%": "في المئة",
        "#": "رقم",
        "$": "دولار",
        "£": "جنيه",
        "°": "درجة",
    },
    dotted=("د.", "أ.", "م."),
    ordinal_endings=("ون", "ين", "ث", "ر", "ى"),
    numbers=NumberWords(money=money),
)
