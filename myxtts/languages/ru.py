"""Russian."""

from myxtts.languages import Language

LANGUAGE = Language(
    code="ru",
    name="Russian",
    limit=182,
    abbreviations={"г-жа": "госпожа", "г-н": "господин", "д-р": "доктор"},
    symbols={
        "&": "и",
        "@": "собака",
        "%": "процентов",
        "#": "номер",
        "$": "доллар",
        "£": "фунт",
        "°": "градус",
    },
    dotted=("т.е.", "т.к.", "т.п.", "т.д.", "ул.", "им.", "руб.", "тыс.", "см.", "стр.", "проф."),
    thousands=",",
    ordinal_endings=("-й", "-я", "-е", "-ое", "-ье", "-го"),
)
