"""Lines of a list, one by one, however long, broken or encoded they are."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from myxtts.errors import UserError

LONGEST_LINE = 1 << 16
"""Bytes; a sentence has a few hundred."""
OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True)
class Line:
    """One line that is not blank; `fault` says why it has no text."""

    number: int
    text: str
    fault: str = ""


def read_lines(path: Path) -> Iterator[Line]:
    """Every line that is not blank; a byte order mark and both kinds of line ends are dropped."""
    try:
        with path.open("rb") as file:
            start = file.read(2)
            if start in OTHER_ENCODINGS:
                what = f"{path} is written in {OTHER_ENCODINGS[start]}"
                raise UserError(what, "save it as UTF-8")
            file.seek(0)
            number = 0
            while raw := file.readline(LONGEST_LINE + 1):
                number += 1
                whole = raw.endswith(b"\n") or len(raw) <= LONGEST_LINE
                while not whole and (more := file.readline(LONGEST_LINE)):
                    whole = more.endswith(b"\n")
                    raw = raw[: LONGEST_LINE + 1]
                line = _line(raw, number)
                if line.text.strip() or line.fault:
                    yield line
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None


def _line(raw: bytes, number: int) -> Line:
    if len(raw) > LONGEST_LINE:
        return Line(number, "", f"longer than {LONGEST_LINE} bytes")
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        return Line(number, "", f"not UTF-8 at byte {error.start + 1}")
    if "\0" in text:
        return Line(number, "", f"a NUL character at {text.index(chr(0)) + 1}")
    return Line(number, text)


def read_cells(path: Path, separator: str) -> Iterator[tuple[Line, list[str]]]:
    """Lines split at the separator; with , and ; a quoted cell may run over several lines."""
    if separator in QUOTING:
        yield from _quoted_cells(read_lines(path), separator)
        return
    for line in read_lines(path):
        yield line, line.text.split(separator)


QUOTING = ",;"
MOST_LINES_A_CELL = 20


def _quoted_cells(lines: Iterator[Line], separator: str) -> Iterator[tuple[Line, list[str]]]:
    waiting: list[Line] = []
    for line in lines:
        waiting.append(line)
        yield from _complete(waiting, separator)
    while waiting:
        yield from _give_up(waiting, separator)


def _complete(waiting: list[Line], separator: str) -> Iterator[tuple[Line, list[str]]]:
    """Hands out the lines that wait, as far as their quotes are closed."""
    while waiting:
        text = "\n".join(line.text for line in waiting)
        if waiting[-1].fault or len(waiting) > MOST_LINES_A_CELL or len(text) > LONGEST_LINE:
            yield from _give_up(waiting, separator)
        elif text.count('"') % 2:
            return  # An open quote: the next line belongs to it.
        elif (cells := _split(text, separator)) is not None:
            yield waiting[0], cells
            waiting.clear()
        else:
            yield from _give_up(waiting, separator)


def _give_up(waiting: list[Line], separator: str) -> Iterator[tuple[Line, list[str]]]:
    """A quote that is never closed costs its own line only; the others are read again."""
    first, *others = waiting
    waiting.clear()
    cells = None if first.fault or first.text.count('"') % 2 else _split(first.text, separator)
    if cells is None:
        first = Line(first.number, first.text, first.fault or "quotes that do not close")
    yield first, cells or []
    for line in others:
        waiting.append(line)
        yield from _complete(waiting, separator)


def _split(text: str, separator: str) -> list[str] | None:
    try:
        return next(csv.reader([text], delimiter=separator))
    except csv.Error:
        return None


def alias(header: Sequence[str], names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Which column plays which part, by the first of the part's names that is there."""
    by_lower = {cell.strip().lower(): cell for cell in header}
    found = {}
    for part, known in names.items():
        for name in known:
            if name in by_lower:
                found[part] = by_lower[name]
                break
    return found
