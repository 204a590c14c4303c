"""Addresses of the network, and Latin words where the user wants them spelled."""

import re
from typing import Literal

_NAMES = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        (
            "اِی بی سی دی ای اِف جی اِچ آی جِی کِی اِل اِم اِن اُ پی کیو آر اِس تی یو وی دابلیو ایکس وای زِد"
        ).split(),
        strict=True,
    )
)
_ENDINGS = "com|org|net|ir|io|edu|gov|info|de|uk|fr|ai|co|me|dev|app"
_MAIL = re.compile(r"(?<![\w.+-])[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_URL = re.compile(
    r"(?:https?://|www\.)[^\s<>«»\"'()،؛؟]+"
    rf"|(?<![\w.@-])(?:[A-Za-z0-9-]+\.)+(?:{_ENDINGS})\b(?:/[^\s<>«»\"'()،؛؟]*)?",
    re.IGNORECASE,
)
_SIGNS = {
    "@": "اَت",
    ".": "دات",
    "/": "اسلش",
    "-": "خط تیره",
    "_": "آندرلاین",
    ":": "دو نقطه",
    "?": "علامت سؤال",
    "=": "مساوی",
    "&": "اند",
    "#": "هشتگ",
    "%": "درصد",
    "+": "پلاس",
    "~": "تیلدا",
}
_HASHTAG = re.compile(r"(?<!\w)#(?=[^\W\d])([\w\u200c]+)")
_HANDLE = re.compile(r"(?<!\w)@(?=\w)")


def write_addresses(text: str) -> str:
    """info@example.com is read info اَت example دات com; the scheme and www are not read."""
    text = _MAIL.sub(lambda m: _read(m[0]), text)
    text = _URL.sub(_url, text)
    text = _HASHTAG.sub(lambda m: " هشتگ " + m[1].replace("_", " "), text)
    return _HANDLE.sub(" اَت ", text)


def _url(match: re.Match[str]) -> str:
    # The sentence's own marks stand right behind an address.
    address = match[0].rstrip(".,;:!?")
    tail = match[0][len(address) :]
    bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", address, flags=re.IGNORECASE)
    return _read(bare.rstrip("/")) + tail


def _read(address: str) -> str:
    return "".join(f" {_SIGNS[c]} " if c in _SIGNS else c for c in address)


def spell_latin(text: str, which: Literal["none", "capitals", "all"]) -> str:
    """Writes the Persian names of letters in the place of Latin words, or of USA and its like."""
    if which == "none":
        return text
    letters = "A-Z" if which == "capitals" else "A-Za-z"
    least = 2 if which == "capitals" else 1
    words = re.compile(f"(?<![A-Za-z])[{letters}]{{{least},}}(?![A-Za-z])")
    return words.sub(lambda m: f" {' '.join(_NAMES[c] for c in m[0].lower())} ", text)
