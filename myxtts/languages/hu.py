"""Hungarian."""

from myxtts.languages import Language

LANGUAGE = Language(
    code="hu",
    name="Hungarian",
    limit=224,
    abbreviations={"dr.": "doktor", "b.": "bácsi", "nőv.": "nővér"},
    symbols={
        "&": "és",
        "@": "kukac",
        "%": "százalék",
        "#": "kettőskereszt",
        "$": "dollár",
        "£": "font",
        "°": "fok",
    },
    dotted=("pl.", "stb.", "kb.", "ún.", "prof.", "ifj.", "id.", "sz.", "u."),
    ordinal_endings=("adik", "edik", "odik", "ödik", "ödike", "ik"),
    ordinal_dot="any",
)
