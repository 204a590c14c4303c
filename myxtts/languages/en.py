"""English."""

from myxtts.languages import Language

LANGUAGE = Language(
    code="en",
    name="English",
    limit=250,
    # "misess" is what the released weights heard for "mrs.".
    abbreviations={
        "mrs.": "misess",
        "mr.": "mister",
        "dr.": "doctor",
        "st.": "saint",
        "co.": "company",
        "jr.": "junior",
        "maj.": "major",
        "gen.": "general",
        "drs.": "doctors",
        "rev.": "reverend",
        "lt.": "lieutenant",
        "hon.": "honorable",
        "sgt.": "sergeant",
        "capt.": "captain",
        "esq.": "esquire",
        "ltd.": "limited",
        "col.": "colonel",
        "ft.": "fort",
    },
    symbols={
        "&": "and",
        "@": "at",
        "%": "percent",
        "#": "hash",
        "$": "dollar",
        "£": "pound",
        "°": "degree",
    },
    dotted=("e.g.", "i.e.", "vs.", "prof.", "no.", "fig.", "vol.", "ms.", "sr.", "u.s.", "approx."),
    thousands=",",
    ordinal_endings=("st", "nd", "rd", "th"),
)
