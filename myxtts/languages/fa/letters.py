"""One character for each Persian letter, mark and digit, whatever the keyboard wrote."""

import re
import unicodedata

LETTERS = "ءآأؤئابپتثجچحخدذرزژسشصضطظعغفقکگلمنهوی"
MARKS = "\u064b-\u0652\u0654\u0670"
"""Vowels, doubling, nunation, hamza above (خانهٔ) and the small alef; inside a class."""
WORD = f"[{LETTERS}{MARKS}\u200c]"

# Each group is written with the letter in front. Hamza stays where Persian keeps it (ء أ ؤ ئ:
# مؤمن، رأس، مسئول), goes from alef where Persian never writes it (إ ٱ, and أ in front of a word),
# and the ezafe of خانهٔ stays, as heh with hamza above, whichever way it was encoded.
_SAME = {
    "ی": "يىېێےۍ\u0620\u063d\u063e\u063f",
    "ک": "كڪګڬڭڮ\u063b\u063c",
    "گ": "ڰڱڲڳڴ",
    "ه": "ةەہھۃۿ",
    "ا": "إٱ\u0672\u0673\u0675",
    "و": "ۆۇۈۉۊۋۏ\u06c4\u06c5ڤ\u0676\u0677",
    "ر": "ڕڑڒړڔڕږڗڙ",
    "د": "ڈډڊڋڌڍڎڏڐ",
    "ت": "ٹټٺٻ",
    "ن": "ںڼڻڹ",
    "ل": "ڵڶڷڸ",
    "ج": "ڃڄ",
    "ح": "ځ",
    "س": "ښڛڜ",
}
_TABLE = str.maketrans(
    {
        **{other: letter for letter, others in _SAME.items() for other in others},
        "ۀ": "ه\u0654",
        "ۂ": "ه\u0654",
        "\u0678": "ئ",
        "ـ": "",  # Tatweel, which only stretches a line.
        "٪": "%",
        "٬": ",",
        "٫": ".",
        "⁄": "/",
        "۔": ".",
        "−": "-",
        "‐": "-",
        "‑": "-",
        "‒": "-",
        "–": "-",
        "—": "-",
        "―": "-",
        "﷼": " ریال ",
        "\u0653": "",  # Madda that stands on no alef; with one, it is composed already.
        "\u0655": "",
    }
)
# Forms of letters for the middle or end of a word, ligatures, fullwidth Latin.
_PRESENTATION = re.compile("[\ufb50-\ufdff\ufe70-\ufeff\uff01-\uff5e]")
_COUNTING = {"No", "Nl"}  # ½ ² ① Ⅷ
_KORANIC = re.compile("[\u0610-\u061a\u0656-\u065f\u06d6-\u06ed]")
_POWER = re.compile("(?<=[0-9])[²³¹⁰⁴-⁹]+")
_HALF = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞])")


def unify_letters(text: str) -> str:
    """Persian letters, ASCII digits, one hyphen, and composed marks."""
    text = "".join(map(_plain_digit, text))
    text = _PRESENTATION.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
    text = _POWER.sub(lambda m: f" به توان {unicodedata.normalize('NFKC', m[0])} ", text)
    text = _HALF.sub(" و ", text)
    text = "".join(map(_plain_count, text))
    text = unicodedata.normalize("NFC", text.translate(_TABLE))
    text = _KORANIC.sub("", text).replace("ی\u0654", "ئ")
    text = half_spaces(re.sub("(?<!ه)\u0654", "", text))
    return re.sub(rf"(?<!{WORD})أ", "ا", text)


def half_spaces(text: str) -> str:
    """Keeps a half-space only where it parts two letters that would otherwise join.

    After ا د ذ ر ز ژ و it changes nothing that is seen: کار‌ها and کارها become one word.
    """
    text = re.sub("\u200c+", "\u200c", text)
    text = re.sub(f"(?<![{LETTERS}{MARKS}])\u200c|\u200c(?![{LETTERS}])", "", text)
    return re.sub(f"([اآأدذرزژوؤء][{MARKS}]*)\u200c", r"\1", text)


def _plain_digit(character: str) -> str:
    if character.isascii() or not character.isdecimal():
        return character
    return str(unicodedata.decimal(character))


def _plain_count(character: str) -> str:
    if unicodedata.category(character) in _COUNTING:
        return unicodedata.normalize("NFKC", character).replace("⁄", "/")
    return character
