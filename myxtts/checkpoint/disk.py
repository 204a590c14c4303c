"""Brings files and folders to the disk, whole or not at all, and says what stood in the way."""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from myxtts.checkpoint.errors import SaveError, sized

PARTIAL = ".saving-"
"""Begins the name of a folder that is being written."""
SPARE = 16 << 20  # Bytes left free beside what is to be written.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """A hidden folder that is renamed to `target` when the block ends well, else removed."""
    unique = f"{os.getpid()}-{secrets.token_hex(4)}"
    partial = target.with_name(f"{PARTIAL}{target.name}-{unique}")
    partial.mkdir()
    try:
        yield partial
        sync_folder(partial)
        partial.rename(target)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replace_file(file: Path, content: bytes) -> None:
    """The file has the old content or the new one, at any moment."""
    beside = file.with_name(f"{PARTIAL}{file.name}")
    try:
        write_file(beside, content)
        beside.replace(file)
        sync_folder(file.parent)
    finally:
        beside.unlink(missing_ok=True)


def write_file(file: Path, content: bytes) -> None:
    """Writes a small file and brings it to the disk."""
    with file.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, each known to the disk."""
    absent = [above for above in (folder, *folder.parents) if not above.exists()]
    for above in reversed(absent):
        above.mkdir(exist_ok=True)
        sync_folder(above.parent)


def sync_folder(folder: Path) -> None:
    """Brings a folder's names to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # Some network disks keep names without being asked.
            raise
    finally:
        os.close(handle)


def check_room(target: Path, needed: int) -> None:
    """Raises before anything is written if the disk cannot hold it."""
    free = shutil.disk_usage(target.parent).free
    if free < needed + SPARE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def telling(target: Path, needed: int) -> Iterator[None]:
    """Says which checkpoint could not be saved, why, and what would work."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _FULL:
            why += f": it needs {sized(needed + SPARE)}{_free(target)}"
        raise SaveError(f"{target} cannot be saved ({why})", _remedy(error)) from None


def _free(target: Path) -> str:
    try:
        return f", and {sized(shutil.disk_usage(target.parent).free)} are free there"
    except OSError:
        return ""


def _remedy(error: OSError) -> str:
    remedies = dict.fromkeys(
        _FULL, "make room there, or keep fewer (training.keep), and --resume auto"
    )
    remedies[errno.ENOENT] = "its folder is gone: moved, or on a disk that is no longer there"
    remedies |= dict.fromkeys(
        (errno.ENOTDIR, errno.EEXIST), "move away the file that stands in its place"
    )
    return remedies.get(error.errno or 0, "name a folder that can be written: telemetry.runs=DIR")
