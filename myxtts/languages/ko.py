"""Korean, written in Latin letters: academic transliteration, which can be read back."""

from itertools import product

from myxtts.languages import Language

_FIRST = 0xAC00
_INITIALS = "g kk n d tt l m b pp s ss _ j jj ch k t p h".replace("_", "").split(" ")
_VOWELS = "a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i".split()
_FINALS = [
    "",
    *"g kk gs n nj nh d l lg lm lb ls lt lp lh m b bs s ss ng j ch k t p h".split(),
]


def _parted() -> frozenset[tuple[str, str]]:
    """Endings and beginnings that need a hyphen, because they could be split another way."""
    ways: dict[str, list[tuple[str, str]]] = {}
    for pair in product(_FINALS, filter(None, _INITIALS)):
        ways.setdefault("".join(pair), []).append(pair)
    ambiguous = {pair for pairs in ways.values() if len(pairs) > 1 for pair in pairs}
    # Without a consonant between them two syllables always run into one another.
    return frozenset(ambiguous | {(final, "") for final in _FINALS})


_PARTED = _parted()


def romanise(text: str) -> str:
    """Each syllable letter by letter, a hyphen where two would be read as other two."""
    written = []
    before: str | None = None
    for character in text:
        place = ord(character) - _FIRST
        if not 0 <= place < len(_INITIALS) * len(_VOWELS) * len(_FINALS):
            written.append(character)
            before = None
            continue
        start, rest = divmod(place, len(_VOWELS) * len(_FINALS))
        vowel, end = divmod(rest, len(_FINALS))
        if before is not None and (before, _INITIALS[start]) in _PARTED:
            written.append("-")
        written.append(_INITIALS[start] + _VOWELS[vowel] + _FINALS[end])
        before = _FINALS[end]
    return "".join(written)


LANGUAGE = Language(
    code="ko",
    name="Korean",
    limit=95,
    symbols={
        "&": "그리고",
        "@": "에",
        "%": "퍼센트",
        "#": "번호",
        "$": "달러",
        "£": "파운드",
        "°": "도",
    },
    ordinal_endings=("번째", "번", "차", "째"),
    romanise=romanise,
)
