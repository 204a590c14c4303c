"""The checkpoints of one run: saved one after the other, the newest few and the best kept."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from myxtts.checkpoint.best import Goal, point_at
from myxtts.checkpoint.disk import PARTIAL, make_folder, telling
from myxtts.checkpoint.errors import CheckpointError
from myxtts.checkpoint.finding import Say, Wanted, opened, search, tell
from myxtts.checkpoint.state import State
from myxtts.checkpoint.stored import Stored, room_of, write_stored

LOCK = ".lock"
LOCK_SECONDS = 20.0
"""How long a lock is waited for: a killed process may take a while to let go of its memory."""
REMOVED = ".removing-"
"""Begins the name of a folder that is being removed."""


class Checkpoints:
    """Saves a run's states to its folder; `open_checkpoints` makes it."""

    def __init__(self, folder: Path, keep: int, goal: Goal | None, say: Say) -> None:
        if keep < 1:
            raise ValueError(f"at least one checkpoint is kept, not {keep}")
        self.folder = folder
        self.keep = keep
        self.goal = goal
        self._say = say
        self._broken: set[str] = set()

    def newest(self, wanted: Wanted | None = None) -> Stored | None:
        """The newest checkpoint that is whole; those found broken are said and never removed."""
        found, faults = search(self.folder, wanted)
        tell(self.folder, found, faults, self._say)
        self._broken |= {fault.file.parent.name for fault in faults}
        return found

    def save(self, state: State) -> Stored:
        """Saves a state and returns when the disk has it; then lets go of what is too old."""
        target = self._free_name(state.step)
        with telling(target, room_of(state)):
            there = self._all()
            serial = max((s.record.serial for s in there), default=0) + 1
            saved = write_stored(target, state, serial)
        self._tidy([saved, *there])
        return saved

    def _all(self) -> list[Stored]:
        """Newest first; those whose record is not right are left alone."""
        return opened(self.folder, [])

    def _free_name(self, step: int) -> Path:
        """A step may come twice: its first checkpoint was broken, or an older one was resumed."""
        path, count = self.folder / f"step-{step:08d}", 1
        while os.path.lexists(path):
            count += 1
            path = self.folder / f"step-{step:08d}-{count}"
        return path

    def _tidy(self, there: list[Stored]) -> None:
        there = [stored for stored in there if stored.folder.name not in self._broken]
        best = self.goal.best(there) if self.goal else None
        try:
            if self.goal:
                point_at(self.folder, best, self.goal)
            for stored in there[self.keep :]:
                if stored is not best:
                    remove(stored.folder)
        except OSError as error:
            # What was saved is whole: that is no reason to end a run.
            self._say(f"⚠ {self.folder} cannot be tidied ({error}): old checkpoints stay")


@contextlib.contextmanager
def open_checkpoints(
    folder: Path, keep: int, goal: Goal | None = None, say: Say = print
) -> Iterator[Checkpoints]:
    """A run's folder of checkpoints, locked; what a killed process left half done is removed."""
    with telling(folder, 0):
        make_folder(folder)
    with _locked(folder, say) as locked:
        if locked:
            _sweep(folder)
        yield Checkpoints(folder, keep, goal, say)


def remove(folder: Path) -> None:
    """Removes a checkpoint; killed in the middle, it is no half checkpoint that is left."""
    aside = folder.with_name(f"{REMOVED}{folder.name}")
    folder.rename(aside)
    shutil.rmtree(aside)


def _sweep(folder: Path) -> None:
    """Whoever wrote these is dead: it would hold the lock."""
    for path in folder.iterdir():
        if path.name.startswith((PARTIAL, REMOVED)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(folder: Path, say: Say) -> Iterator[bool]:
    """Holds the folder against other processes; False where the disk knows no locks.

    The lock is the process's own and ends with it, however it ends. flock would be inherited
    by a forked child, and so outlive a killed run.
    """
    with telling(folder, 0), contextlib.ExitStack() as stack:
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        stack.callback(os.close, file)
        held = stack.pop_all()
    with held:
        try:
            _wait_for(file, folder, say)
        except OSError as error:
            say(f"⚠ {folder} cannot be locked ({error.strerror}): let one run only write there")
            yield False
            return
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        yield True


def _wait_for(file: int, folder: Path, say: Say) -> None:
    deadline, told = time.monotonic() + LOCK_SECONDS, False
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # POSIX allows either.
            owner = os.pread(file, 32, 0).decode("ascii", "replace")
            if time.monotonic() > deadline:
                raise CheckpointError(
                    f"another run (process {owner}) is saving to {folder}",
                    "end it first, or give this run a folder of its own",
                ) from None
            if not told:
                say(f"waiting for process {owner}, which still holds {folder}")
            told = True
            time.sleep(0.1)
        else:
            return
