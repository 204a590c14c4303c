"""Persian words for numbers, and the digits of a text written with them."""

import re

_ONES = (
    "صفر یک دو سه چهار پنج شش هفت هشت نه ده یازده دوازده سیزده چهارده پانزده شانزده هفده هجده نوزده"
).split()
_TENS = "بیست سی چهل پنجاه شصت هفتاد هشتاد نود".split()
_HUNDREDS = "صد دویست سیصد چهارصد پانصد ششصد هفتصد هشتصد نهصد".split()
_SCALES = ("", "هزار", "میلیون", "میلیارد", "تریلیون", "کوادریلیون")
_LONGEST = 18  # Digits that the scales reach; a longer run is read digit by digit.
_SCALE_AHEAD = "(?=\\s*(?:هزار|میلیون|میلیارد|تریلیون|درصد))"
_ROUND = {10, 100, 1000}


def cardinal(number: int) -> str:
    """1402 is هزار و چهارصد و دو; a single thousand has no یک in front."""
    if number == 0:
        return _ONES[0]
    groups = []
    for scale in _SCALES:
        number, group = divmod(number, 1000)
        if group:
            bare = scale == "هزار" and group == 1
            groups.append(scale if bare else f"{_below_thousand(group)} {scale}".strip())
    return " و ".join(reversed(groups))


def _below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    parts = [_HUNDREDS[hundreds - 1]] if hundreds else []
    if rest >= 20:
        parts.append(_TENS[rest // 10 - 2])
        rest %= 10
    if rest:
        parts.append(_ONES[rest])
    return " و ".join(parts)


def ordinal(number: int) -> str:
    """یکم، دوم، سوم، چهارم …; after سی a half-space and ام."""
    said = cardinal(number)
    if said.endswith("سه"):
        return said.removesuffix("سه") + "سوم"
    return said + ("\u200cام" if said.endswith("ی") else "م")


def spoken(digits: str) -> str:
    """A run of digits as it is read: zeros in front aloud, overlong ones digit by digit."""
    zeros = len(digits) - len(digits.lstrip("0"))
    if len(digits) > _LONGEST:
        return " ".join(_ONES[int(digit)] for digit in digits)
    if zeros == len(digits):
        return " ".join([_ONES[0]] * zeros)
    return " ".join([*[_ONES[0]] * zeros, cardinal(int(digits))])


def decimal(whole: str, part: str) -> str:
    """Up to three digits after the point are read as a number, more one by one."""
    if len(part) > 3:
        return f"{spoken(whole)} ممیز {' '.join(_ONES[int(digit)] for digit in part)}"
    return f"{spoken(whole)} ممیز {spoken(part)}"


def write_numbers(text: str) -> str:
    """Ordinals, fractions, ranges, signs, decimals and whole numbers, as words."""
    for pattern, say in _RULES:
        text = pattern.sub(lambda match, say=say: f" {say(match)} ", text)  # type: ignore[misc]
    return text


def _ordinal(match: re.Match[str]) -> str:
    digits, ending, plural = match.groups()
    if len(digits) == 4 and ending == "م" and not plural:
        return f"{digits} میلادی"
    if len(digits) > _LONGEST:
        return f"{digits} {ending}{plural or ''}"
    return ordinal(int(digits)) + (plural or "")


def _slash(match: re.Match[str]) -> str:
    """3/4 is three quarters; a half of Persian typists also write the decimal point so."""
    above, below = match[1], match[2]
    small = len(below) < 5 and (int(below) <= 10 or int(below) in _ROUND)
    fraction = small and not below.startswith("0") and 0 < int(above[:5]) < int(below)
    if fraction and len(above) < 5:
        return f"{cardinal(int(above))} {ordinal(int(below))}"
    return decimal(above, below)


def _range(match: re.Match[str]) -> str:
    low, high = match[1], match[2]
    rising = not high.startswith("0") and float(low) < float(high)
    return f"{low} تا {high}" if rising else f"{low} {high}"


_AMOUNT = r"(\d{1,30}(?:\.\d{1,30})?)"
_RULES = (
    (re.compile(r"(?<!\d)(\d+)(?:\s(?=ام)|)(اُم|ام|م)(ین)?(?![\w\u200c])"), _ordinal),
    (re.compile(rf"(?<![\d./])(\d+)/(\d+){_SCALE_AHEAD}"), lambda m: decimal(m[1], m[2])),
    (re.compile(r"(?<!\d)\d+(?:/\d+){2,}"), lambda m: m[0].replace("/", " ")),
    (re.compile(r"(?<![\d./])(\d+)/(\d+)(?![\d/]|\.\d)"), _slash),
    (re.compile(r"(?<!\d)\d+(?:-\d+){2,}"), lambda m: m[0].replace("-", " ")),
    (re.compile(rf"(?<![\d.-]){_AMOUNT}(?:-| - ){_AMOUNT}(?![\d-]|\.\d)"), _range),
    (re.compile(r"(?<![\w)-])-(?=\d)"), lambda _: "منفی"),
    (re.compile(r"(?<![\w)+])\+(?=\d)"), lambda _: "مثبت"),
    (re.compile(r"(?<![\d.])(\d+)\.(\d+)(?!\.?\d)"), lambda m: decimal(m[1], m[2])),
    (re.compile(r"(?<=\d)\.(?=\d)"), lambda _: "نقطه"),
    (re.compile(r"\d+"), lambda m: spoken(m[0])),
)
