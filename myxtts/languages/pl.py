"""Polish."""

from myxtts.languages import Language

LANGUAGE = Language(
    code="pl",
    name="Polish",
    limit=224,
    abbreviations={
        "p.": "pani",
        "m.": "pan",
        "dr.": "doktor",
        "sw.": "święty",
        "jr.": "junior",
    },
    symbols={
        "&": "i",
        "@": "małpa",
        "%": "procent",
        "#": "krzyżyk",
        "$": "dolar",
        "£": "funt",
        "°": "stopnie",
    },
    dotted=("np.", "tzn.", "tj.", "ul.", "prof.", "św.", "ok.", "godz.", "nr."),
    ordinal_endings=("º", "ª", "st", "nd", "rd", "th"),
)
