"""Marks, spaces and half-spaces of Persian text that has no digits any more."""

import re

from myxtts.languages.fa.letters import LETTERS, WORD, half_spaces

_SYMBOLS = {
    "&": "و",
    "@": "اَت",
    "#": "شماره",
    "№": "شماره",
    "%": "درصد",
    "$": "دلار",
    "€": "یورو",
    "£": "پوند",
    "¥": "ین",
    "₽": "روبل",
    "₹": "روپیه",
    "₺": "لیر",
    "+": "به‌علاوه",
    "=": "مساوی",
    "×": "ضرب در",
    "÷": "تقسیم بر",
    "°": "درجه",
    "℃": "درجه سانتی‌گراد",
    "℉": "درجه فارنهایت",
}
_HONORIFICS = {
    "(ص)": "صلی الله علیه و آله",
    "(ع)": "علیه السلام",
    "(س)": "سلام الله علیها",
    "(ره)": "رحمه الله علیه",
    "(عج)": "عجل الله تعالی فرجه",
}
_SHORT = (
    (rf"(?<!{WORD})ه\s?\.\s?ش(?:\s?\.|(?!{WORD}))", "هجری شمسی"),
    (rf"(?<!{WORD})ه\s?\.\s?ق(?:\s?\.|(?!{WORD}))", "هجری قمری"),
    (rf"(?<!{WORD})ق\s?\.\s?م(?:\s?\.|(?!{WORD}))", "قبل از میلاد"),
)
_MARKS = {",": "،", ";": "؛", "?": "؟", "…": "...", "‥": "...", "’": "'", "‘": "'", "`": "'"}
_UNHEARD = re.compile('[«»“”„‟‹›"<>{}\\[\\]|\\\\/_~^*•·●◦■□◆▪★☆←→↑↓§¶©®™]')

_SUFFIXES = "ها(?:ی|یی|یم|یت|یش|یمان|یتان|یشان)?|تر(?:ها(?:ی|یی)?|ی)?|ترین(?:ها(?:ی|یی)?)?"
_APART = (
    (re.compile(rf"(?<={WORD}) (?=(?:{_SUFFIXES})(?!{WORD}))"), "\u200c"),
    (re.compile(rf"(?<!{WORD})(ن?می) (?={WORD})"), "\\1\u200c"),
    (re.compile(rf"(?<={WORD}ه) (?=ی(?!{WORD}))"), "\u200c"),
    (re.compile(rf"(?<={WORD}{WORD}ه) (?=(?:ام|اش|اند|ایم|اید)(?!{WORD}))"), "\u200c"),
)


def write_symbols(text: str) -> str:
    """Words for symbols, the long form of what is shortened, and no quotation marks."""
    for short, words in _HONORIFICS.items():
        text = text.replace(short, f" {words} ")
    for pattern, words in _SHORT:
        text = re.sub(pattern, f" {words} ", text)
    for symbol, word in _SYMBOLS.items():
        text = text.replace(symbol, f" {word} ")
    for mark, own in _MARKS.items():
        text = text.replace(mark, own)
    return _UNHEARD.sub(" ", text)


def space_marks(text: str) -> str:
    """No space in front of a mark, one behind it, and no mark twice."""
    text = re.sub(r"(?<![a-z])'|'(?![a-z])", " ", text)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\s+(?=[،؛؟!.:)])", "", text)
    text = re.sub(r"\(\s+", "(", text)
    text = re.sub(r"([،؛؟!:-])\1+", r"\1", text)
    text = re.sub(r"\.{2,}", "...", text)
    text = re.sub(r"([،؛؟!])(?=[^\W\d])", r"\1 ", text)
    return re.sub(rf"(?<=[{LETTERS}][{LETTERS}])\.(?=[{LETTERS}]{{2}})", ". ", text)


def space_words(text: str, *, join_suffixes: bool) -> str:
    """Joins what belongs to one word, where asked, and drops half-spaces that part nothing."""
    text = half_spaces(text)
    if join_suffixes:
        for pattern, joined in _APART:
            text = pattern.sub(joined, text)
    return half_spaces(text)
