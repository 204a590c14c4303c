"""The folder in which a set of prepared clips grows, beside the place where it will stand.

`OUT.preparing` holds the lock, the listing, the decoded chunks and `out`. Only when `out` is
whole is it renamed to OUT. After a kill the folder is found again by its key and gone on with.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from myxtts.errors import UserError
from myxtts.manifest import NAME

SUMMARY = "summary.json"
KEY = "key"


@dataclass(frozen=True)
class Work:
    """The places inside the working folder."""

    folder: Path
    target: Path

    @property
    def listing(self) -> Path:
        """Every clip, one line each."""
        return self.folder / "listing.jsonl"

    @property
    def chunks(self) -> Path:
        """Decoded clips that no shard holds yet."""
        return self.folder / "chunks"

    @property
    def out(self) -> Path:
        """What will be the prepared folder."""
        return self.folder / "out"

    @property
    def log(self) -> Path:
        """What the decoding processes print."""
        return self.folder / "decoder.log"

    def begin(self, key: str) -> bool:
        """Keeps what a run with the same key left, else starts empty; says whether it kept it."""
        mark = self.folder / KEY
        kept = mark.exists() and mark.read_text(encoding="ascii") == key
        if not kept:
            mark.unlink(missing_ok=True)
            for place in (self.chunks, self.out):
                shutil.rmtree(place, ignore_errors=True)
        self.chunks.mkdir(exist_ok=True)
        self.out.mkdir(exist_ok=True)
        if not kept:
            mark.write_text(key, encoding="ascii")
        return kept

    def finish(self) -> None:
        """Puts `out` in its place; an older set goes away whole, and not before."""
        sync(self.out)
        old = self.folder / "old"
        if self.target.is_dir() and any(self.target.iterdir()):
            self.target.rename(old)
        self.out.rename(self.target)
        sync(self.target.parent)
        self.discard()

    def discard(self) -> None:
        """Removes the working folder; the key first, so that no half of it is gone on with."""
        (self.folder / KEY).unlink(missing_ok=True)
        shutil.rmtree(self.folder)


@contextmanager
def working_folder(target: Path) -> Iterator[Work]:
    """The working folder of `target`, for one process alone."""
    folder = target.with_name(target.name + ".preparing")
    with _disk_errors_told(folder):
        lock = _locked(folder)
        try:
            work = Work(folder, target)
            _restore(work)
            yield work
        finally:
            lock.close()


def _locked(folder: Path) -> IO[str]:
    """The lock of a folder that still stands: one that was removed meanwhile is made again."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip()
            file.close()
            what = f"another prepare (process {owner}) is writing {folder}"
            raise UserError(what, "wait for it, or write to another folder with --out") from None
        if _is_same(file, folder / "lock"):
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            return file
        file.close()


def _is_same(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _restore(work: Work) -> None:
    """Undoes a replacement that was killed between its two renames."""
    old = work.folder / "old"
    if not old.exists():
        return
    if work.target.exists():
        shutil.rmtree(old)
    else:
        old.rename(work.target)


@contextmanager
def _disk_errors_told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = f"{error.strerror or error} ({error.filename or folder})"
        remedy = "free some room or mend the permissions, and run the same command: it goes on"
        raise UserError(f"{folder} cannot be written: {why}", remedy) from None


def check_target(data: Path, out: Path) -> None:
    """Refuses places that would mix prepared clips with other files."""
    root = (data if data.is_dir() else data.parent).resolve()
    place = out.resolve()
    if place == root or root in place.parents:
        raise UserError(f"{out} lies inside the data folder {root}", "name a folder beside it")
    if place in root.parents:
        raise UserError(f"{out} holds the data folder {root}", "name a folder beside it")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file", "name a folder that does not exist yet")
    if out.is_dir() and any(out.iterdir()) and not (out / SUMMARY).exists():
        what = f"{out} is not empty and holds no {SUMMARY}: it was not made by prepare"
        raise UserError(what, "name a folder that does not exist yet")


def is_prepared(out: Path) -> bool:
    """Whether the folder holds a whole set."""
    return (out / SUMMARY).is_file() and (out / NAME).is_file()


def sync(folder: Path) -> None:
    """Brings the folder's own entries to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
