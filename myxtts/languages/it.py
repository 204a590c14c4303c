"""Italian."""

from myxtts.languages import Language, NumberWords

LANGUAGE = Language(
    code="it",
    name="Italian",
    limit=213,
    abbreviations={
        "sig.": "signore",
        "dr.": "dottore",
        "st.": "santo",
        "co.": "compagnia",
        "jr.": "junior",
        "ltd.": "limitata",
    },
    symbols={
        "&": "e",
        "@": "chiocciola",
        "%": "per cento",
        "#": "cancelletto",
        "$": "dollaro",
        "£": "sterlina",
        "°": "gradi",
    },
    dotted=("sig.ra.", "dott.", "ing.", "avv.", "prof.", "p.es.", "pag.", "art."),
    ordinal_endings=("º", "°", "ª", "o", "a", "i", "e"),
    numbers=NumberWords(cents_after=" e "),
)
