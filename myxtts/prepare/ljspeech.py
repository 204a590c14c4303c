"""LJSpeech: `id|text|normalised` in a list, the clips in `wavs/`.

More columns may follow: speaker, then language. The normalised text is taken where there is one.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from myxtts.prepare.clip import Record
from myxtts.prepare.files import AUDIO, ending, is_folder, stem
from myxtts.prepare.lines import Line, read_lines

FOLDERS = ("wavs", "wav", "audio", "clips", "")
ENDINGS = ("", ".wav", ".flac", ".ogg", ".mp3", ".opus")
MOST_COLUMNS = 5


def records(root: Path, listed: Path) -> Iterator[Record]:
    """One record for each line that is not blank."""
    folders = [folder for folder in FOLDERS if is_folder(root / folder)]
    name = listed.relative_to(root).as_posix()
    for line in read_lines(listed):
        yield _record(root, folders, name, line)


def _record(root: Path, folders: list[str], name: str, line: Line) -> Record:
    cells = [cell.strip() for cell in line.text.split("|")]
    if fault := line.fault or _fault(cells):
        return Record("", None, name, line.number, fault=fault)
    cells += [""] * (MOST_COLUMNS - len(cells))
    number, text, normalised, speaker, language = cells
    return Record(
        audio=_audio(root, folders, number),
        text=normalised or text,
        list=name,
        line=line.number,
        id=stem(number),
        speaker=speaker,
        language=language,
    )


def _fault(cells: list[str]) -> str:
    if len(cells) < 2:
        return "no | between id and text"
    if len(cells) > MOST_COLUMNS:
        return f"{len(cells)} columns, at most {MOST_COLUMNS}"
    return "" if cells[0] else "no id before the first |"


def _audio(root: Path, folders: list[str], number: str) -> str:
    endings = ENDINGS if ending(number) not in AUDIO else ("",)
    tried = [str(Path(folder, number + end)) for folder in folders for end in endings]
    # A folder is no clip, but one that is called x.wav is named as if it were.
    found = (name for name in tried if _is_there(root / name, bare=name.endswith(number)))
    return next(found, tried[min(1, len(tried) - 1)])


def _is_there(path: Path, *, bare: bool) -> bool:
    if bare and ending(path.name) not in AUDIO and is_folder(path):
        return False
    return os.path.lexists(path)
