"""Which checkpoint to go on from: the newest that is whole, or the one that was named.

A path may be one checkpoint, a folder of checkpoints, or a folder of a stage, a run or of runs
that has such folders in it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from myxtts.checkpoint.best import BEST, pointed_at
from myxtts.checkpoint.errors import BrokenError, CheckpointError
from myxtts.checkpoint.record import RECORD, Record
from myxtts.checkpoint.stored import Stored, open_stored

CHECKPOINTS = "checkpoints"
"""The folder of a run that holds its checkpoints."""
DEPTHS = ("", "*/", "*/*/")
"""How far below a stage, a run or the folder of all runs its checkpoints lie."""
_NAME = re.compile(r"step-[0-9]{8,}(-[0-9]+)?")

Say = Callable[[str], None]
Wanted = Callable[[Record], bool]


def newest(path: Path, say: Say, wanted: Wanted | None = None) -> Stored | None:
    """The newest checkpoint that is whole and wanted, None where there never was one.

    Broken ones that are newer are named to `say`; where all are broken that is an error,
    because going on from nothing would lose what a person may still save.
    """
    found, faults = search(path, wanted)
    tell(path, found, faults, say)
    return found


def tell(path: Path, found: Stored | None, faults: list[BrokenError], say: Say) -> None:
    """Names the broken checkpoints that were passed over; raises if nothing else was found."""
    if faults and found is None:
        told = "\n".join(fault.problem for fault in faults)
        raise CheckpointError(
            f"{path} has no checkpoint that is whole:\n{told}",
            "move the broken ones away to begin anew, or --resume another run's folder",
        )
    for fault in faults:
        say(f"⚠ broken checkpoint passed over: {fault.problem}")


def search(path: Path, wanted: Wanted | None = None) -> tuple[Stored | None, list[BrokenError]]:
    """The newest whole checkpoint, and what is wrong with those that were passed over."""
    faults: list[BrokenError] = []
    try:
        for stored in _by_age(path, faults, wanted):
            try:
                stored.check()
            except BrokenError as fault:
                if not stored.folder.exists():  # Removed meanwhile, by the run that writes there.
                    return search(path, wanted)
                faults.append(fault)
            else:
                return stored, faults
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror})") from None
    return None, faults


def find(path: Path, say: Say, wanted: Wanted | None = None) -> Stored:
    """The checkpoint that a user named, checked; or the newest of the folder that was named."""
    if path.name == BEST and path.is_file():
        path = pointed_at(path)
    elif path.name == RECORD:
        path = path.parent
    if not path.is_dir():
        what = "is no folder" if path.exists() else "does not exist"
        raise CheckpointError(f"{path} {what}", "name a checkpoint, or the folder of a run")
    if is_checkpoint(path):
        stored = open_stored(path)
        stored.check()
        return stored
    found = newest(path, say, wanted)
    if found is None:
        raise CheckpointError(
            f"{path} holds no checkpoint" + (" of that kind" if wanted else ""),
            "name a checkpoint, or the folder of a run that has saved one",
        )
    return found


def is_checkpoint(path: Path) -> bool:
    """Whether a folder is one checkpoint, whole or not, or a slim copy."""
    return (path / RECORD).exists() or bool(_NAME.fullmatch(path.name))


def opened(folder: Path, faults: list[BrokenError]) -> list[Stored]:
    """The checkpoints of one folder, newest first; those without a right record are faults."""
    found = []
    for path in sorted(folder.iterdir(), reverse=True):
        if _NAME.fullmatch(path.name):
            try:
                found.append(open_stored(path))
            except BrokenError as fault:
                if path.exists():
                    faults.append(fault)
    return sorted(found, key=lambda stored: stored.record.serial, reverse=True)


def _by_age(path: Path, faults: list[BrokenError], wanted: Wanted | None) -> Iterable[Stored]:
    runs = [opened(folder, faults) for folder in _folders(path)]
    # Within a folder the order is that of the saves; between folders there is only the clock.
    runs.sort(key=lambda run: run[0].record.saved_at if run else "", reverse=True)
    return (s for run in runs for s in run if wanted is None or wanted(s.record))


def _folders(path: Path) -> Iterator[Path]:
    """The folders of checkpoints at a path."""
    if not path.is_dir():
        return
    if path.name == CHECKPOINTS or any(_NAME.fullmatch(p.name) for p in path.iterdir()):
        yield path
        return
    for above in DEPTHS:
        yield from (p for p in path.glob(above + CHECKPOINTS) if p.is_dir())
