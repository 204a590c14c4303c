"""Safetensors files, written and read tensor by tensor, every bit kept.

The library writes a whole dict at once and knows no bfloat16 of NumPy's; here no more than one
tensor is in memory. A file is eight bytes of length, a JSON table {name: dtype, shape, place},
and the numbers without a gap.
"""

import errno
import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from math import prod
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from myxtts.checkpoint.errors import BrokenError, CheckpointError
from myxtts.checkpoint.state import KINDS, Array, Group, fetched, outline

LARGEST_TABLE = 64 << 20  # Bytes; a thousand tensors take about 100 kB.
ALIGNED = 8  # Bytes; the numbers begin on such a border.
PIECE = 1 << 24  # Bytes read at once where only their sum is wanted.
_MEANS_BROKEN = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True)
class FileSum:
    """By what a file is known again."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class StoredArray:
    """An array that lies in a file until it is asked for."""

    file: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    """Its first byte in the file."""

    def numpy(self) -> Array:
        """Its numbers."""
        raw = np.empty(self.dtype.itemsize * prod(self.shape), np.uint8)
        with reading(self.file) as handle:
            handle.seek(self.start)
            fill(handle, raw.data, self.file)
        little = raw.view(self.dtype.newbyteorder("<")).reshape(self.shape)
        return little.astype(self.dtype, copy=False)


def write_tensors(file: Path, group: Group) -> FileSum:
    """Writes the arrays and brings them to the disk."""
    outlines = {name: outline(array, name) for name, array in group.items()}
    # Wide numbers first, so that each array begins on a border of its own kind.
    order = sorted(outlines, key=lambda name: (-KINDS[outlines[name][0]].itemsize, name))
    table, at = {}, 0
    for name in order:
        code, shape = outlines[name]
        end = at + KINDS[code].itemsize * prod(shape)
        table[name] = {"dtype": code, "shape": shape, "data_offsets": (at, end)}
        at = end
    with file.open("xb", buffering=0) as handle:
        out = _Summed(handle)
        out.write(_head(table))
        for name in order:
            array = fetched(group[name])
            if outline(array, name) != outlines[name]:
                raise ValueError(f"{name} is {outline(array)}, announced was {outlines[name]}")
            out.write(_raw(array))
        os.fsync(handle.fileno())
        return out.sum


def read_tensors(file: Path) -> dict[str, StoredArray]:
    """The arrays of a file by name; none is read yet."""
    with reading(file) as handle:
        size = os.fstat(handle.fileno()).st_size
        (length,) = struct.unpack("<Q", _taken(handle, 8, file))
        if length > min(size, LARGEST_TABLE):
            raise BrokenError(file, f"its table would have {length} bytes")
        try:
            table = json.loads(_taken(handle, length, file))
            table.pop("__metadata__", None)
            arrays = {name: _stored(file, entry, 8 + length) for name, entry in table.items()}
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise BrokenError(file, "its table does not describe arrays") from None
    _check_cover(file, arrays, 8 + length, size)
    return arrays


def sum_of(file: Path) -> FileSum:
    """A file's size and hash as they are now."""
    digest, size = hashlib.sha256(), 0
    piece = memoryview(bytearray(PIECE))
    with reading(file) as handle:
        while count := handle.readinto(piece):
            digest.update(piece[:count])
            size += count
    return FileSum(size, digest.hexdigest())


@contextmanager
def reading(file: Path) -> Iterator[FileIO]:
    """Opens a file, and nothing that would make a reader wait; names it in what goes wrong."""
    try:
        if not S_ISREG(file.stat().st_mode):
            raise BrokenError(file, "is no file")
        with FileIO(file) as handle:
            yield handle
    except OSError as error:
        if isinstance(error, _MEANS_BROKEN) or error.errno == errno.EIO:
            raise BrokenError(file, f"cannot be read ({error.strerror})") from None
        raise CheckpointError(
            f"{file} cannot be read ({error.strerror})", "let this user read it, and try again"
        ) from None


def fill(handle: FileIO, room: memoryview, file: Path) -> None:
    """Fills the room with the next bytes."""
    filled = 0
    while filled < len(room):
        count = handle.readinto(room[filled:])
        if not count:
            raise BrokenError(file, f"ends at byte {handle.tell()}, before its arrays do")
        filled += count


class _Summed:
    """A file that keeps the sum of what it was given."""

    def __init__(self, handle: FileIO) -> None:
        self.handle = handle
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        """Writes all of it: one system call may take only a part."""
        self.digest.update(data)
        self.size += len(data)
        rest = memoryview(data)
        while rest:
            rest = rest[self.handle.write(rest) :]

    @property
    def sum(self) -> FileSum:
        return FileSum(self.size, self.digest.hexdigest())


def _head(table: Mapping[str, Any]) -> bytes:
    head = json.dumps(table, separators=(",", ":")).encode()
    head += b" " * (-len(head) % ALIGNED)
    return struct.pack("<Q", len(head)) + head


def _raw(array: Array) -> memoryview:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8).data


def _taken(handle: FileIO, length: int, file: Path) -> bytearray:
    taken = bytearray(length)
    fill(handle, memoryview(taken), file)
    return taken


def _stored(file: Path, entry: Any, start: int) -> StoredArray:
    kind, shape = KINDS[entry["dtype"]], tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    if any(type(n) is not int or not 0 <= n < 1 << 62 for n in (*shape, begin, end)):
        raise ValueError("a length is a whole number")
    if prod(shape) * kind.itemsize != end - begin:
        raise ValueError("an array's place is as large as the array")
    return StoredArray(file, kind, shape, start + begin)


def _check_cover(file: Path, arrays: Mapping[str, StoredArray], start: int, size: int) -> None:
    places = [(a.start, a.dtype.itemsize * prod(a.shape)) for a in arrays.values()]
    for begin, length in sorted(places):
        if begin != start:
            raise BrokenError(file, "its arrays overlap or leave a gap")
        start += length
    if start != size:
        raise BrokenError(file, f"has {size} bytes, and its table describes {start}")
