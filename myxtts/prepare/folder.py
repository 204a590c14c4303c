"""A plain folder: beside each clip a `.txt` or `.lab` of the same name that holds what is said.

The folder that a clip lies in is taken for its speaker.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from myxtts.errors import UserError
from myxtts.prepare.clip import Record
from myxtts.prepare.files import AUDIO, TEXTS, ending, is_file, stem, walk
from myxtts.prepare.lines import LONGEST_LINE, read_lines

NO_CLIPS = ("readme", "license", "licence", "copying", "notice", "changelog")


def records(root: Path, links: bool) -> Iterator[Record]:
    """One record for each clip with a text beside it, and for each text without its clip."""
    for path in walk(root, links):
        if ending(path) in AUDIO:
            for end in TEXTS:
                if is_file(root / (stem(path) + end)):
                    yield _record(root, path, stem(path) + end)
                    break
        elif ending(path) in TEXTS and not _has_audio(root, path):
            yield _record(root, str(Path(path).with_suffix(".wav")), path)


def read_text(path: Path) -> tuple[str, str]:
    """A text file's words on one line, or what is wrong with it."""
    if not is_file(path):
        return "", f"{path.name} is no file"
    if path.stat().st_size > LONGEST_LINE:
        return "", f"{path.name} is longer than {LONGEST_LINE} bytes"
    try:
        lines = list(read_lines(path))
    except UserError as error:
        return "", error.problem
    faults = [line.fault for line in lines if line.fault]
    return " ".join(line.text.strip() for line in lines), faults[0] if faults else ""


def _has_audio(root: Path, path: str) -> bool:
    name = str(Path(path).with_suffix(""))
    if Path(name).name.lower().startswith(NO_CLIPS):
        return True
    # Of two texts for one clip, .txt is read and .lab is not: the clip has been named.
    return any(os.path.lexists(root / (name + end)) for end in AUDIO)


def _record(root: Path, audio: str, text_file: str) -> Record:
    text, fault = read_text(root / text_file)
    folder, _, _ = audio.rpartition("/")
    return Record(
        audio=audio,
        text=text,
        list=text_file,
        line=1,
        id=stem(audio),
        speaker=folder.partition("/")[0],
        fault=fault,
    )
