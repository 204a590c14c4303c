"""Dates of both calendars and times of the day."""

import re
from collections.abc import Sequence

from myxtts.languages.fa.numbers import cardinal, ordinal

_JALALI = "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند".split()
_GREGORIAN = "ژانویه فوریه مارس آوریل مه ژوئن ژوئیه اوت سپتامبر اکتبر نوامبر دسامبر".split()
_GREGORIAN_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_JALALI_DAYS = (31,) * 6 + (30,) * 6

_DATE = re.compile(r"(?<![\d/.-])(\d{1,4})([/.-])(\d{1,2})\2(\d{1,4})(?![\d/-]|\.\d)")
_CLOCK = r"([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?"
_TIMES = re.compile(rf"(?<![\d:])({_CLOCK})\s?-\s?(?={_CLOCK}(?![\d:]))")
_TIME = re.compile(rf"(?P<hour>ساعت\s*)?(?<![\d:]){_CLOCK}(?![\d:])")


def write_dates_and_times(text: str) -> str:
    """1402/05/13 and 14:30 as they are said; what is no date or time stays."""
    text = _DATE.sub(_date, text)
    return _TIME.sub(_time, _TIMES.sub(r"\1 تا ", text))


def _date(match: re.Match[str]) -> str:
    first, month, last = match.group(1, 3, 4)
    year, day = (last, first) if len(last) == 4 else (first, last)
    months = _months_of(year)
    if not months or len(day) > 2 or not 1 <= int(month) <= 12:
        return match[0]
    names, days = months
    if not 1 <= int(day) <= days[int(month) - 1]:
        return match[0]
    return f" {ordinal(int(day))} {names[int(month) - 1]} {cardinal(int(year))} "


def _months_of(year: str) -> tuple[Sequence[str], Sequence[int]] | None:
    """The calendar that a year belongs to; two digits that can be no day are a Jalali year."""
    if len(year) == 4 and 1200 <= int(year) < 1500:
        return _JALALI, _JALALI_DAYS
    if len(year) == 4 and 1500 <= int(year) < 2200:
        return _GREGORIAN, _GREGORIAN_DAYS
    if len(year) == 2 and int(year) > 31:
        return _JALALI, _JALALI_DAYS
    return None


def _time(match: re.Match[str]) -> str:
    hour, minute, second = (int(part or 0) for part in match.group(2, 3, 4))
    parts = [cardinal(hour)]
    if minute:
        parts.append(f"{cardinal(minute)} دقیقه")
    if second:
        parts.append(f"{cardinal(second)} ثانیه")
    # A bare hour would be heard as a number.
    named = match["hour"] or len(parts) == 1
    return (" ساعت " if named else " ") + " و ".join(parts) + " "
