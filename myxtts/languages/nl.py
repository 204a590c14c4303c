"""Dutch."""

from myxtts.languages import Language

LANGUAGE = Language(
    code="nl",
    name="Dutch",
    limit=251,
    abbreviations={
        "dhr.": "de heer",
        "mevr.": "mevrouw",
        "dr.": "dokter",
        "jhr.": "jonkheer",
    },
    symbols={
        "&": "en",
        "@": "bij",
        "%": "procent",
        "#": "hekje",
        "$": "dollar",
        "£": "pond",
        "°": "graden",
    },
    dotted=("bijv.", "d.w.z.", "o.a.", "prof.", "ca.", "nr.", "blz.", "ir.", "drs."),
    ordinal_endings=("de", "ste", "e"),
)
