"""VCTK: a folder of recordings for each speaker, and a folder of texts beside.

`wav48*/p225/p225_001_mic1.flac` is read with `txt/p225/p225_001.txt`. A second microphone has
the id of the first, so the court refuses it as a duplicate and says of what.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from myxtts.prepare.clip import Record
from myxtts.prepare.files import audio_files, is_file, is_folder, stem, walk
from myxtts.prepare.folder import read_text

TEXTS = "txt"


def recordings(root: Path) -> list[Path]:
    """The folders of recordings: wav48, wav48_silence_trimmed, wav22 and so on."""
    return sorted(path for path in root.glob("wav*") if is_folder(path) and path.name != "wavs")


def records(root: Path, links: bool) -> Iterator[Record]:
    """One record for each recording with a text, and one for each text without a recording."""
    heard: set[str] = set()
    for path in audio_files(root, links):
        top, _, rest = path.partition("/")
        number = re.sub(r"_mic\d$", "", stem(rest))
        text = root / TEXTS / f"{number}.txt"
        if not top.startswith("wav") or not is_file(text):
            continue  # The listing names it among the clips that have no text.
        heard.add(number)
        yield _record(root, path, number)
    for path in walk(root / TEXTS, links):
        number = path.removesuffix(".txt")
        if path.endswith(".txt") and number not in heard:
            yield _record(root, f"wav48/{number}.wav", number)


def _record(root: Path, audio: str, number: str) -> Record:
    text, fault = read_text(root / TEXTS / f"{number}.txt")
    return Record(
        audio=audio,
        text=text,
        list=f"{TEXTS}/{number}.txt",
        line=1,
        id=number,
        speaker=number.partition("/")[0],
        fault=fault,
    )
