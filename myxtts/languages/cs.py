"""Czech, with the ordinals that num2words lacks."""

from num2words import num2words

from myxtts.languages import Language, NumberWords

_SMALL = (
    "nultý první druhý třetí čtvrtý pátý šestý sedmý osmý devátý desátý jedenáctý dvanáctý "
    "třináctý čtrnáctý patnáctý šestnáctý sedmnáctý osmnáctý devatenáctý"
).split()
_TENS = "dvacátý třicátý čtyřicátý padesátý šedesátý sedmdesátý osmdesátý devadesátý".split()
_HUNDREDS = "stý dvoustý třístý čtyřstý pětistý šestistý sedmistý osmistý devítistý".split()


def ordinal(number: int) -> str:
    """21 is dvacátý první; only the last three digits bend, as Czech allows for long numbers."""
    thousands, rest = divmod(number, 1000)
    hundreds, rest = divmod(rest, 100)
    parts = [str(num2words(thousands * 1000, lang="cs"))] if thousands else []
    if thousands and not hundreds and not rest:
        return "tisící" if thousands == 1 else f"{parts[0]}tý"
    if hundreds:
        parts.append(_HUNDREDS[hundreds - 1])
    if rest >= 20:
        parts.append(_TENS[rest // 10 - 2])
        rest %= 10
    if rest or not parts:
        parts.append(_SMALL[rest])
    return " ".join(parts)


LANGUAGE = Language(
    code="cs",
    name="Czech",
    limit=186,
    abbreviations={"dr.": "doktor", "ing.": "inženýr", "p.": "pan"},
    symbols={
        "&": "a",
        "@": "na",
        "%": "procento",
        "#": "křížek",
        "$": "dolar",
        "£": "libra",
        "°": "stupně",
    },
    dotted=("např.", "tzv.", "tj.", "atd.", "mudr.", "prof.", "ul.", "č.", "str."),
    ordinal_dot="last",
    numbers=NumberWords(ordinal=ordinal),
)
