"""Lists with named columns: CSV, TSV, `|`-separated, JSON lines and Parquet.

The columns may stand in any order and under any of the names below; all others are left alone.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from myxtts.errors import UserError
from myxtts.prepare.clip import Record
from myxtts.prepare.files import ending, stem, unwritable
from myxtts.prepare.lines import Line, alias, read_cells, read_lines

COLUMNS: Mapping[str, Sequence[str]] = {
    "audio": [
        "audio",
        "audio_file",
        "audio_path",
        "audio_filepath",
        "path",
        "file",
        "file_name",
        "filename",
        "wav",
        "wav_path",
        "wav_file",
        "clip",
    ],
    "text": ["text", "sentence", "transcript", "transcription", "normalized_text", "normalised"],
    "speaker": ["speaker", "speaker_name", "speaker_id", "client_id", "voice"],
    "language": ["language", "lang", "locale"],
    "id": ["id", "clip_id", "utterance_id"],
}
NEEDED = ("audio", "text")
SEPARATORS = {".csv": ",;|\t", ".tsv": "\t", ".txt": "|\t"}
ENDINGS = (*SEPARATORS, ".jsonl", ".parquet")
ROWS_AT_ONCE = 1024


def columns_of(path: Path) -> dict[str, str]:
    """Which of the list's columns is which, as far as they are found."""
    if ending(path.name) == ".parquet":
        return alias(_parquet(path).schema_arrow.names, COLUMNS)
    first = next(read_lines(path), None)
    if first is None:
        return {}
    if ending(path.name) == ".jsonl":
        row = _object(first)
        return alias(list(row), COLUMNS) if isinstance(row, dict) else {}
    separator, header = header_of(path, first)
    return alias(header, COLUMNS) if separator else {}


def header_of(path: Path, first: Line) -> tuple[str, list[str]]:
    """The separator under which the first line names a clip and a text, and its cells."""
    for separator in SEPARATORS.get(ending(path.name), ""):
        header = [cell.strip().strip('"') for cell in first.text.split(separator)]
        if all(part in alias(header, COLUMNS) for part in NEEDED):
            return separator, header
    return "", []


def records(root: Path, listed: Path, folder: str = "") -> Iterator[Record]:
    """One record for each line or row; `folder` is where the audio names begin."""
    name = listed.relative_to(root).as_posix()
    for number, row in _rows(listed):
        yield _record(row, name, number, folder)


def _rows(listed: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    """Line numbers, with the parts found there, or with what is wrong."""
    columns = columns_of(listed)
    if missing := [part for part in NEEDED if part not in columns]:
        what = f"{listed} names no column for {' and '.join(missing)}"
        known = "; ".join(f"{part}: {', '.join(COLUMNS[part])}" for part in missing)
        raise UserError(what, f"its first line must hold one of these names ({known})")
    match ending(listed.name):
        case ".parquet":
            yield from _parquet_rows(listed, columns)
        case ".jsonl":
            yield from _json_rows(listed)
        case _:
            yield from _cell_rows(listed, columns)


def _cell_rows(
    listed: Path, columns: Mapping[str, str]
) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    separator, header = header_of(listed, next(read_lines(listed)))
    cells_of_lines = read_cells(listed, separator)
    next(cells_of_lines)
    for line, cells in cells_of_lines:
        if line.fault:
            yield line.number, line.fault
        elif len(cells) != len(header):
            yield line.number, f"{len(cells)} columns, the first line names {len(header)}"
        else:
            row = dict(zip(header, cells, strict=True))
            yield line.number, {part: row[name] for part, name in columns.items()}


def _json_rows(listed: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    for line in read_lines(listed):
        row = line.fault or _object(line)
        if isinstance(row, str):
            yield line.number, row
        else:
            columns = alias(list(row), COLUMNS)
            yield line.number, {part: row[name] for part, name in columns.items()}


def _object(line: Line) -> dict[str, Any] | str:
    try:
        row = json.loads(line.text)
    except (ValueError, RecursionError):
        return "not JSON"
    return row if isinstance(row, dict) else "not a JSON object such as {...}"


def _parquet(listed: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(listed)
    except (OSError, pa.ArrowException) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{listed} is no Parquet file that can be read ({why})") from None


def _parquet_rows(
    listed: Path, columns: Mapping[str, str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    number = 0
    try:
        for batch in _parquet(listed).iter_batches(ROWS_AT_ONCE, columns=list(columns.values())):
            for row in batch.to_pylist():
                number += 1
                yield number, {part: row[name] for part, name in columns.items()}
    except (OSError, pa.ArrowException) as error:
        why = f"{listed} is broken after row {number} ({str(error).splitlines()[0]})"
        raise UserError(why, "write the file again") from None


def _record(row: Mapping[str, Any] | str, name: str, number: int, folder: str) -> Record:
    if isinstance(row, str):
        return Record("", None, name, number, fault=row)
    cells = {part: _text(cell) for part, cell in row.items()}
    if fault := _fault(cells):
        return Record("", None, name, number, fault=fault)
    texts = {part: (cell or "").strip() for part, cell in cells.items()}
    audio = texts["audio"]
    return Record(
        audio=f"{folder}/{audio}" if folder else audio,
        text=texts["text"],
        list=name,
        line=number,
        id=texts.get("id") or stem(audio),
        speaker=texts.get("speaker", ""),
        language=texts.get("language", ""),
    )


def _text(cell: Any) -> str | None:
    """A cell as text; whole numbers serve as ids and speakers, None where it is neither."""
    if isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell) if abs(cell) < 10**18 else None
    return "" if cell is None else cell if isinstance(cell, str) else None


def _fault(cells: Mapping[str, str | None]) -> str:
    for part in NEEDED:
        if part not in cells:
            return f"no {part}"
    for part, cell in cells.items():
        if cell is None:
            return f"the {part} is no text"
        if why := unwritable(cell):
            return f"the {part} holds {why}"
    return "" if cells["audio"] else "no audio file is named"
