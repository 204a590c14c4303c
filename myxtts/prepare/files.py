"""The data folder: which audio files it holds, and whether a path stays inside it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from myxtts.prepare.clip import Refusal

AUDIO = frozenset(
    [
        ".aac",
        ".aif",
        ".aifc",
        ".aiff",
        ".au",
        ".caf",
        ".flac",
        ".m4a",
        ".mp3",
        ".mp4",
        ".oga",
        ".ogg",
        ".opus",
        ".rf64",
        ".snd",
        ".w64",
        ".wav",
        ".webm",
        ".wma",
    ]
)
"""Endings that mean sound, also those that libsndfile cannot read: such files are told."""

TEXTS = (".txt", ".lab")


def ending(name: str) -> str:
    """The part from the last dot on, in small letters."""
    return Path(name).suffix.lower()


def stem(name: str) -> str:
    """A path without an audio file's ending; other dots belong to the name."""
    return name[: -len(ending(name))] if ending(name) in AUDIO else name


def walk(root: Path, links: bool, folder: str = "") -> Iterator[str]:
    """Every path in an order that is fixed, but no folders; relative to `root`.

    Folders that have an audio file's name are among them, and links that lead out of `root` to
    a folder; with `links` those are entered instead.
    """
    try:
        with os.scandir(root / folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return  # A folder that may not be opened: what the list names in it is refused by name.
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if ending(entry.name) in AUDIO or not is_folder(root / path):
            yield path
        elif not entry.is_symlink() or (links and _leaves(_real(root, path))):
            yield from walk(root, links, path)
        elif _leaves(_real(root, path)):
            yield path


def audio_files(root: Path, links: bool) -> Iterator[str]:
    """Paths that end as audio files do, whatever is behind them, and links to folders outside."""
    for path in walk(root, links):
        if ending(path) in AUDIO or is_folder(root / path):
            yield path


def _real(root: Path, path: str) -> str:
    return os.path.relpath(os.path.realpath(root / path), root)


def locate(root: Path, name: str, links: bool) -> tuple[str, os.stat_result] | Refusal:
    """Where a name leads, relative to the folder, or why nothing is read there."""
    if fault := unwritable(name):
        return Refusal("line", fault)
    source = relative(root, name)
    if _leaves(source):
        return Refusal("outside", name, "inside the data folder")
    try:
        if not links and _leaves(_real(root, source)):
            return Refusal(
                "outside", f"a link to {os.path.realpath(root / source)}", "no such link"
            )
        found = (root / source).stat()
    except OSError as error:
        is_absent = isinstance(error, (FileNotFoundError, NotADirectoryError))
        rule = "missing" if is_absent else "unreadable"
        return Refusal(rule, error.strerror or "cannot be opened", "a file that can be read")
    if not stat.S_ISREG(found.st_mode):
        return Refusal("unreadable", f"{_kind(found.st_mode)}, no file", "a file")
    return source, found


def is_file(path: Path) -> bool:
    """Whether a file can be seen there; pathlib's own raises for names that are too long."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Whether a folder can be seen there."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def relative(root: Path, name: str) -> str:
    """A name in the one form that it has everywhere: relative to the folder, without detours."""
    return os.path.relpath(root / name, root)


def unwritable(text: str) -> str:
    """Why a text can stand in no list and no manifest, or nothing."""
    if "\0" in text:
        return "a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "characters that are not UTF-8"
    return ""


def _leaves(relative: str) -> bool:
    return relative == os.pardir or relative.startswith(os.pardir + os.sep)


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
