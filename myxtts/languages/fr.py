"""French."""

from myxtts.languages import Language, NumberWords

LANGUAGE = Language(
    code="fr",
    name="French",
    limit=273,
    abbreviations={
        "mme.": "madame",
        "mr.": "monsieur",
        "dr.": "docteur",
        "st.": "saint",
        "co.": "compagnie",
        "jr.": "junior",
        "ltd.": "limitée",
    },
    symbols={
        "&": "et",
        "@": "arobase",
        "%": "pour cent",
        "#": "dièse",
        "$": "dollar",
        "£": "livre",
        "°": "degrés",
    },
    dotted=("m.", "mm.", "p.ex.", "cf.", "env.", "prof.", "art.", "vol."),
    ordinal_endings=("º", "ª", "er", "re", "e", "ème"),
    numbers=NumberWords(cents_after=" et "),
)
