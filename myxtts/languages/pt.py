"""Portuguese."""

from myxtts.languages import Language, NumberWords

LANGUAGE = Language(
    code="pt",
    name="Portuguese",
    limit=203,
    abbreviations={
        "sra.": "senhora",
        "sr.": "senhor",
        "dr.": "doutor",
        "dra.": "doutora",
        "st.": "santo",
        "co.": "companhia",
        "jr.": "júnior",
        "ltd.": "limitada",
    },
    symbols={
        "&": "e",
        "@": "arroba",
        "%": "por cento",
        "#": "cardinal",
        "$": "dólar",
        "£": "libra",
        "°": "graus",
    },
    dotted=("srta.", "prof.", "p.ex.", "pág.", "núm.", "av.", "exmo."),
    ordinal_endings=("º", "ª", "o", "a", "os", "as"),
    numbers=NumberWords(cents_after=" e "),
)
