"""German."""

from myxtts.languages import Language, NumberWords

LANGUAGE = Language(
    code="de",
    name="German",
    limit=253,
    abbreviations={
        "fr.": "frau",
        "dr.": "doktor",
        "st.": "sankt",
        "co.": "firma",
        "jr.": "junior",
    },
    symbols={
        "&": "und",
        "@": "at",
        "%": "prozent",
        "#": "raute",
        "$": "dollar",
        "£": "pfund",
        "°": "grad",
    },
    dotted=("hr.", "z.b.", "d.h.", "u.a.", "bzw.", "ca.", "nr.", "prof.", "str.", "vgl.", "abs."),
    ordinal_endings=("st", "nd", "rd", "th", "º", "ª"),
    ordinal_dot="last",
    numbers=NumberWords(cents_after=" und "),
)
