"""Hindi, with the number words that num2words lacks."""

from myxtts.languages import Language, NumberWords

_DIGITS = dict(zip("०१२३४५६७८९", "0123456789", strict=True))

# Hindi has a word of its own for every number below a hundred.
_SMALL = (
    "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस "
    "बीस इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस तीस इकतीस बत्तीस तैंतीस चौंतीस "
    "पैंतीस छत्तीस सैंतीस अड़तीस उनतालीस चालीस इकतालीस बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस "
    "सैंतालीस अड़तालीस उनचास पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन उनसठ साठ इकसठ "
    "बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर "
    "छिहत्तर सतहत्तर अठहत्तर उन्यासी अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी "
    "नवासी नब्बे इक्यानवे बानवे तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे"
).split()
_SCALES = (
    (10**11, "खरब"),
    (10**9, "अरब"),
    (10**7, "करोड़"),
    (10**5, "लाख"),
    (1000, "हज़ार"),
    (100, "सौ"),
)
_FIRST = {1: "पहला", 2: "दूसरा", 3: "तीसरा", 4: "चौथा", 6: "छठा"}
_COINS = {"GBP": ("पाउंड", "पेंस"), "USD": ("डॉलर", "सेंट"), "EUR": ("यूरो", "सेंट")}


def cardinal(number: int) -> str:
    """In the Indian scale: 1,25,000 is एक लाख पच्चीस हज़ार."""
    parts = []
    for size, word in _SCALES:
        count, number = divmod(number, size)
        if count:
            parts.append(f"{cardinal(count)} {word}")
    if number or not parts:
        parts.append(_SMALL[number])
    return " ".join(parts)


def ordinal(number: int) -> str:
    """पहला, दूसरा …, from five on with the ending वाँ."""
    return _FIRST.get(number) or cardinal(number) + "वाँ"


def decimal(written: str) -> str:
    """The digits after the point are said one by one."""
    whole, part = written.split(".")
    return " ".join([cardinal(int(whole)), "दशमलव", *(_SMALL[int(digit)] for digit in part)])


def money(amount: float, currency: str) -> str:
    """An amount with its coins."""
    whole, cents = divmod(round(amount * 100), 100)
    note, coin = _COINS[currency]
    tail = f" {cardinal(cents)} {coin}" if cents else ""
    return f"{cardinal(whole)} {note}{tail}"


LANGUAGE = Language(
    code="hi",
    name="Hindi",
    limit=150,
    letters=_DIGITS,
    # Both decide how a Devanagari cluster is written.
    joiners="\u200c\u200d",
    symbols={
        "&": "और",
        "@": "ऐट दी रेट",
        "%": "प्रतिशत",
        "#": "हैश",
        "$": "डॉलर",
        "£": "पाउंड",
        "°": "डिग्री",
    },
    dotted=("डॉ.", "श्री.", "प्रो."),
    thousands=",",
    groups="2,3",
    ordinal_endings=("st", "nd", "rd", "th", "वाँ", "वां", "वीं", "वें"),
    numbers=NumberWords(cardinal=cardinal, ordinal=ordinal, decimal=decimal, money=money),
)
