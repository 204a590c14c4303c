"""A folder that comes to be whole or not at all: written beside its place, then renamed."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from myxtts.errors import UserError

_SPARE = 16 << 20  # Bytes left free beside what is to be written.


@contextlib.contextmanager
def new_folder(out: Path, size: int) -> Iterator[Path]:
    """Where to write `size` bytes that appear at `out` when the block ends well."""
    with _telling(out):
        _check_free(out)
        made = _make_parents(out.absolute().parent)
    try:
        with _telling(out), _beside(out, size) as folder:
            yield folder
            _sync(folder)
            folder.rename(out)
            made = []
            _sync_folder(out.absolute().parent)
    finally:
        for parent in reversed(made):
            with contextlib.suppress(OSError):  # Somebody put something there meanwhile.
                parent.rmdir()


@contextlib.contextmanager
def _beside(out: Path, size: int) -> Iterator[Path]:
    parent = out.absolute().parent
    free = shutil.disk_usage(parent).free
    if free < size + _SPARE:
        raise UserError(
            f"{out} needs {size / 1e9:.2f} GB, and {free / 1e9:.2f} GB are free there",
            "make room, or name a folder on another disk: --out DIR",
        )
    folder = Path(tempfile.mkdtemp(prefix=f"{out.name}.partial-", dir=parent))
    try:
        folder.chmod(0o755)  # Of mkdtemp's own making only the user could read it.
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_free(out: Path) -> None:
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise UserError(f"{out} is there already", "name a folder that is new or empty: --out DIR")


def _make_parents(parent: Path) -> list[Path]:
    absent = [folder for folder in (parent, *parent.parents) if not folder.exists()]
    made: list[Path] = []
    for folder in reversed(absent):
        folder.mkdir()
        made.append(folder)
    return made


def _sync(folder: Path) -> None:
    for file in folder.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _telling(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{out} cannot be written: {error.strerror or error}",
            "make room there, or name a folder that can be written: --out DIR",
        ) from None
