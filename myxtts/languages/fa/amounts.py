"""What stands beside a number: telephone groups, currencies, percent and units."""

import re

from myxtts.languages.fa.numbers import spoken

_SIGNS = {"$": "دلار", "€": "یورو", "£": "پوند", "¥": "ین", "₽": "روبل", "₹": "روپیه", "₺": "لیر"}
_COINS = {"دلار": "سنت", "یورو": "سنت", "پوند": "پنس"}
_UNITS = {
    "km": "کیلومتر",
    "m": "متر",
    "cm": "سانتی‌متر",
    "mm": "میلی‌متر",
    "nm": "نانومتر",
    "km2": "کیلومتر مربع",
    "m2": "متر مربع",
    "cm2": "سانتی‌متر مربع",
    "m3": "متر مکعب",
    "cm3": "سانتی‌متر مکعب",
    "km/h": "کیلومتر بر ساعت",
    "m/s": "متر بر ثانیه",
    "ha": "هکتار",
    "kg": "کیلوگرم",
    "g": "گرم",
    "mg": "میلی‌گرم",
    "l": "لیتر",
    "L": "لیتر",
    "ml": "میلی‌لیتر",
    "cc": "سی‌سی",
    "s": "ثانیه",
    "ms": "میلی‌ثانیه",
    "min": "دقیقه",
    "h": "ساعت",
    "hz": "هرتز",
    "khz": "کیلوهرتز",
    "mhz": "مگاهرتز",
    "ghz": "گیگاهرتز",
    "kb": "کیلوبایت",
    "mb": "مگابایت",
    "gb": "گیگابایت",
    "tb": "ترابایت",
    "W": "وات",
    "kw": "کیلووات",
    "V": "ولت",
    "°c": "درجه سانتی‌گراد",
    "°f": "درجه فارنهایت",
    "℃": "درجه سانتی‌گراد",
    "℉": "درجه فارنهایت",
    "°": "درجه",
    "usd": "دلار",
    "eur": "یورو",
    "irr": "ریال",
}
_DECIMAL = r"(?<!\d)\d+(?:\.\d+)?"
_SCALES = "هزار|میلیون|میلیارد|تریلیون"
_SIGN = "[" + "".join(_SIGNS) + "]"

_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:[,،]\d{3})+(?!\d|[,،]\d)")
_DOTTED = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.])")
_TELEPHONE = re.compile(
    r"(?<![\w.,/])(?:(\+|00)(98|\d{1,3})[ -]?)?"
    r"(0?9\d\d[ -]?\d{3}[ -]?\d{2}[ -]?\d{2}|0\d{2,3}[ -]?\d{4}[ -]?\d{4}|0\d{9,10})"
    r"(?![\d/]|[.-]\d)"
)
_ABROAD = re.compile(r"(?<![\w.,/])\+(\d{1,3}(?:[ -]\d{2,4}){2,5}|\d{8,15})(?![\d/]|[.-]\d)")
_MONEY = re.compile(rf"({_SIGN})\s?({_DECIMAL})(\s?(?:{_SCALES}))?(?!\w)")
_MONEY_BEHIND = re.compile(rf"({_DECIMAL})(\s?(?:{_SCALES}))?\s?({_SIGN})")
_PERCENT = re.compile(rf"({_DECIMAL}(?:/\d+)?)\s?%(?!\d)|%({_DECIMAL}(?:/\d+)?)(?![\d%])")
_UNIT = re.compile(
    r"(?<=\d)\s?("
    + "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
    + r")(?![A-Za-z0-9/])",
    re.IGNORECASE,
)


def write_amounts(text: str) -> str:
    """Puts the words beside a number where they are said; its digits are written later."""
    text = _TELEPHONE.sub(_telephone, text)
    text = _ABROAD.sub(lambda m: " مثبت " + _in_groups(re.split("[ -]", m[1])), text)
    text = _GROUPS.sub(lambda m: re.sub("[,،]", "", m[0]), text)
    text = _DOTTED.sub(lambda m: m[0].replace(".", ""), text)
    text = _MONEY.sub(lambda m: _money(m[2], m[3], m[1]), text)
    text = _MONEY_BEHIND.sub(lambda m: _money(m[1], m[2], m[3]), text)
    text = _PERCENT.sub(lambda m: f"{m[1] or m[2]} درصد ", text)
    return _UNIT.sub(_unit, text)


def _telephone(match: re.Match[str]) -> str:
    plus, country, number = match.groups()
    if number.startswith("9") and not plus:
        return match[0]
    lead = f"{'مثبت' if plus == '+' else 'صفر صفر'} {spoken(country)} " if plus else ""
    digits = re.sub("[ -]", "", number)
    area = 4 if digits.startswith("09") else 3
    if digits.startswith("9"):
        groups = [digits[:3], digits[3:6], digits[6:8], digits[8:]]
    elif area == 4:
        groups = [digits[:4], digits[4:7], digits[7:9], digits[9:]]
    else:
        groups = [digits[:area], digits[area:]]
    return f" {lead}{_in_groups(groups)} "


def _in_groups(groups: list[str]) -> str:
    """Up to three digits as a number, more in pairs, as Persians tell a telephone number."""
    return " ".join(spoken(part) for group in groups for part in _parts(group))


def _parts(digits: str) -> list[str]:
    if digits.startswith("0") or len(digits) <= 3:
        return [digits]
    head = 3 if len(digits) % 2 else 2
    return [digits[:head], *(digits[i : i + 2] for i in range(head, len(digits), 2))]


def _money(amount: str, scale: str | None, sign: str) -> str:
    # No space in front: a minus or a range's dash may stand there, and belongs to the number.
    currency = _SIGNS[sign]
    whole, _, cents = amount.partition(".")
    if scale:
        return f"{amount} {scale.strip()} {currency} "
    if len(cents) == 2 and currency in _COINS:
        coins = f" و {int(cents)} {_COINS[currency]}" if int(cents) else ""
        return f"{whole} {currency}{coins} "
    return f"{amount} {currency} "


def _unit(match: re.Match[str]) -> str:
    """A single letter counts only as it is written above: 5G is no weight."""
    written = match[1]
    word = _UNITS.get(written) or (_UNITS.get(written.lower()) if len(written) > 1 else None)
    return f" {word} " if word else match[0]
