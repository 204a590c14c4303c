"""Chinese: numbers into characters, then pinyin with tone digits (5 is the neutral tone)."""

import re
import unicodedata

import pypinyin

from myxtts.config import TextConfig
from myxtts.languages import Language

_DIGITS = "零一二三四五六七八九"
_PLACES = ("", "十", "百", "千")
_SCALES = ("", "万", "亿", "兆")
_LONGEST = 16  # Digits that the scales reach.
_CURRENCIES = {"¥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
_SYMBOLS = {"&": "和", "@": "在", "%": "百分之", "#": "号", "$": "美元", "£": "英镑", "°": "度"}
_NUMBER = r"(?<!\d)(\d+(?:\.\d+)?)"
_IDEOGRAPH = "[\u4e00-\u9fff]"
_COUNTED = "[个位名只条本张次种件间家岁天]"


def by_digits(digits: str) -> str:
    """Years, telephone numbers and codes: one character for each digit."""
    return "".join(_DIGITS[int(digit)] for digit in digits)


def _section(number: int) -> str:
    """A number below 10,000, with 零 for the places left out between others."""
    said = ""
    for place in range(3, -1, -1):
        digit = number // 10**place % 10
        if digit:
            two = digit == 2 and place >= 2
            said += ("两" if two else _DIGITS[digit]) + _PLACES[place]
        elif said and not said.endswith("零"):
            said += "零"
    return said.rstrip("零")


def cardinal(number: int) -> str:
    """A whole number as it is counted."""
    if number == 0:
        return _DIGITS[0]
    said = ""
    for scale in range(len(_SCALES) - 1, -1, -1):
        section = number // 10 ** (4 * scale) % 10**4
        if not section:
            continue
        gap = "零" if said and section < 1000 else ""
        said += gap + ("两" if section == 2 and scale else _section(section)) + _SCALES[scale]
    return said.removeprefix("一") if said.startswith("一十") else said


def number_words(written: str) -> str:
    """Digits, perhaps with a point, counted; beyond the scales digit by digit."""
    whole, _, part = written.partition(".")
    if len(whole) > _LONGEST or (whole[0] == "0" and len(whole) > 1):
        said = by_digits(whole)
    else:
        said = cardinal(int(whole))
    return f"{said}点{by_digits(part)}" if part else said


def _date(match: re.Match[str]) -> str:
    year, month, day = match.group(1, 3, 4)
    return f"{by_digits(year)}年{cardinal(int(month))}月{cardinal(int(day))}日"


def _time(match: re.Match[str]) -> str:
    hour, minute, second = match.groups()
    minutes = ("" if int(minute) >= 10 else "零") + cardinal(int(minute)) + "分"
    said = cardinal(int(hour)) + "点" + ("" if minute == "00" and not second else minutes)
    return said + (f"{cardinal(int(second))}秒" if second else "")


def _money(match: re.Match[str]) -> str:
    return number_words(match[2]) + _CURRENCIES[match[1]]


def _money_behind(match: re.Match[str]) -> str:
    return number_words(match[1]) + _CURRENCIES[match[2]]


def _bare(match: re.Match[str]) -> str:
    """Up to three digits are counted, more only where something is counted with them."""
    digits = match[0]
    following = match.string[match.end() : match.end() + 1]
    if digits == "2" and re.match(_COUNTED, following):
        return "两"
    counted = (
        len(digits) <= 3
        or (digits.endswith("000") and len(digits) < 10)
        or re.match(_IDEOGRAPH, following)
    )
    return number_words(digits) if counted and len(digits) <= _LONGEST else by_digits(digits)


_RULES = (
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), lambda _: ""),
    (re.compile(r"(?<!\d)(\d{4})([-/.])([01]?\d)\2([0-3]?\d)(?!\d)"), _date),
    (re.compile(r"(?<!\d)\d+(?=年)"), lambda match: by_digits(match[0])),
    (re.compile(r"(?<!\d)([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:])"), _time),
    (re.compile(r"(?<![\d\w)])-(?=[\d$¥€£])"), lambda _: "负"),
    (re.compile(rf"([¥$€£])\s?{_NUMBER}"), _money),
    (re.compile(rf"{_NUMBER}\s?([¥$€£])"), _money_behind),
    (re.compile(rf"{_NUMBER}\s?%"), lambda match: "百分之" + number_words(match[1])),
    (
        re.compile(r"(?<![\d/])(\d+)/(\d+)(?![\d/])"),
        lambda match: f"{number_words(match[2])}分之{number_words(match[1])}",
    ),
    (re.compile(r"(?<=\d)\s?[~～]\s?(?=\d)"), lambda _: "到"),
    (re.compile(r"0\d{2,3}-\d{7,8}"), lambda match: by_digits(match[0].replace("-", ""))),
    (re.compile(r"(?<!\d)\d+\.\d+(?!\.?\d)"), lambda match: number_words(match[0])),
    (re.compile(r"\d+"), _bare),
)


def _pause(character: str) -> str:
    """Every mark is a comma, as the released weights heard it."""
    symbol = character.isascii() and unicodedata.category(character)[0] == "S"
    return "," if symbol or unicodedata.category(character)[0] == "P" else character


def write_numbers(text: str) -> str:
    """Chinese without digits or symbols, and with commas only."""
    for pattern, said in _RULES:
        text = pattern.sub(said, text)
    for symbol, word in _SYMBOLS.items():
        text = text.replace(symbol, word)
    return "".join(map(_pause, text))


def clean(text: str, _: TextConfig) -> str:
    """Pinyin syllables joined without spaces; of several readings the commonest."""
    folded = "".join(
        unicodedata.normalize("NFKC", c) if "\uff01" <= c <= "\uff5e" or c == "￥" else c
        for c in text
    )
    written = write_numbers(folded.replace('"', "").lower())
    readings = pypinyin.pinyin(
        written, style=pypinyin.Style.TONE3, heteronym=False, neutral_tone_with_five=True
    )
    return "".join(reading[0] for reading in readings)


LANGUAGE = Language(
    code="zh",
    name="Chinese",
    limit=82,
    tag="zh-cn",
    letters={"\u3000": " "},
    clean=clean,
)
