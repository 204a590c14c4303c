"""Spanish."""

from myxtts.languages import Language, NumberWords

LANGUAGE = Language(
    code="es",
    name="Spanish",
    limit=239,
    abbreviations={
        "sra.": "señora",
        "sr.": "señor",
        "dr.": "doctor",
        "dra.": "doctora",
        "st.": "santo",
        "co.": "compañía",
        "jr.": "junior",
        "ltd.": "limitada",
    },
    symbols={
        "&": "y",
        "@": "arroba",
        "%": "por ciento",
        "#": "numeral",
        "$": "dolar",
        "£": "libra",
        "°": "grados",
    },
    dotted=("ud.", "uds.", "srta.", "p.ej.", "ee.uu.", "núm.", "pág.", "prof.", "av."),
    ordinal_endings=("º", "ª", "er", "o", "a", "os", "as"),
    numbers=NumberWords(cents_after=" con "),
)
