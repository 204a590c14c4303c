"""Turkish."""

from myxtts.languages import Language

LANGUAGE = Language(
    code="tr",
    name="Turkish",
    limit=226,
    # Lower case of İ is i with a second dot everywhere but in Turkish.
    letters={"İ": "i", "Ö": "ö", "Ü": "ü"},
    abbreviations={"b.": "bay", "byk.": "büyük", "dr.": "doktor"},
    symbols={
        "&": "ve",
        "@": "at",
        "%": "yüzde",
        "#": "diyez",
        "$": "dolar",
        "£": "sterlin",
        "°": "derece",
    },
    dotted=("vb.", "vs.", "örn.", "prof.", "doç.", "sn.", "no.", "sok.", "cad."),
    decimals=False,
    ordinal_endings=("inci", "nci", "uncu", "üncü"),
    ordinal_dot="any",
)
