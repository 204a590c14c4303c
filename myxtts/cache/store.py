"""Codes on the disk: values one after the other in one file, and an index of what was appended.

A batch's values are written before its record in the index, and the record has a sum of itself
and one of its values. So a process that is killed leaves every whole batch usable, and what is
damaged later is found and made again. The file of values only ever grows: it may be mapped.
Legend: K lengths that clips are padded to, C clips.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.cache.maker import Say
from myxtts.checkpoint.disk import make_folder, replace_file
from myxtts.errors import UserError
from myxtts.reader import Codes

VALUES, INDEX, LOCK = "codes.i16", "index", ".lock"
BYTES = 2
MOST_CODES = 2**15
"""What 16 bits hold."""
_MAGIC = b"mxc1"
_HEAD = struct.Struct("<4sIQQ16s")  # Magic, entries, first value, values, their sum.
_SUM = 16
_ENTRY = np.dtype([("clip", "u1", 16), ("top", "<u4"), ("codes", "<u4")])
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CacheError(UserError):
    """The cache cannot be read or written."""

    exit_code = 1


class Key(NamedTuple):
    """One clip, padded to one length: the codec hears what stands behind a clip's end."""

    clip: bytes
    """The 16 bytes that the manifest has as the sum of its samples."""
    top: int
    """Samples."""


class _Place(NamedTuple):
    begin: int
    codes: int


class CodeCache:
    """What one codec says of clips; only the process that has it open for writing may `put`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[Key, _Place] = {}
        self._end = 0
        """Values, up to the last that counts."""
        self._torn = False
        """Whether the index ends in something that is no record."""
        self._writing = False
        # Several data devices, each in a thread of its own, keep what they make.
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def read(self, say: Say) -> None:
        """Takes over what is whole on the disk, and says what is not."""
        raw, values = _content(self.folder / INDEX), _mapped(self.folder / VALUES)
        self._places, self._end = {}, 0
        damaged = 0
        records, whole = _records(raw)
        self._torn = whole < len(raw)
        for begin, count, wanted, entries in records:
            self._end = max(self._end, begin + count)
            part = values[begin : begin + count]
            if len(part) < count or _sum(part.tobytes()) != wanted:
                damaged += len(entries)
                continue
            self._enter(entries, begin)
        # A damaged batch's values may be beyond the file's end: nothing maps them.
        self._end = min(self._end, len(values))
        faults = [f"the codes of {damaged} clips"] * bool(damaged)
        faults += [f"{len(raw) - whole} bytes of its index"] * self._torn
        if faults:
            told = " and ".join(faults)
            say(f"cache: {self.folder} is damaged: {told}; what is lost is encoded again")

    def put(self, keys: Sequence[Key], codes: Sequence[NDArray[np.integer]]) -> None:
        """Appends those of a batch that are not there yet."""
        if not self._writing:
            raise RuntimeError(f"{self.folder} is not open for writing")
        with self._lock:
            fresh = {k: c for k, c in zip(keys, codes, strict=True) if k not in self._places}
            if fresh:
                with telling(self.folder):
                    self._append(fresh)

    def codes(self, clips: Sequence[bytes], tops: Sequence[int]) -> Codes:
        """The clips' codes in each length, for a reader: mapped, not loaded."""
        keys = [Key(clip, top) for top in tops for clip in clips]
        places = [self._places.get(key, _Place(-1, 0)) for key in keys]
        found_KC2 = np.array(places, np.int64).reshape(len(tops), len(clips), 2)
        values = _mapped(self.folder / VALUES)[: self._end]
        shared = tf.experimental.dlpack.from_dlpack(values.__dlpack__())
        return Codes(shared, found_KC2[..., 0], found_KC2[..., 1])

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """While this process alone may write."""
        with contextlib.ExitStack() as stack:
            with telling(self.folder):
                lock = stack.enter_context((self.folder / LOCK).open("w"))
                _hold(lock.fileno(), self.folder)
                self.read(_silent)  # Another process may have written since.
                if self._torn:  # No record follows a torn one.
                    index = self.folder / INDEX
                    raw = index.read_bytes()
                    replace_file(index, raw[: _records(raw)[1]])
            self._writing = True
            try:
                yield
            finally:
                self._writing = False
            with telling(self.folder):
                for name in (VALUES, INDEX):
                    _sync(self.folder / name)

    def _append(self, fresh: dict[Key, NDArray[np.integer]]) -> None:
        values = np.concatenate(list(fresh.values()))
        if values.size and not 0 <= values.min() <= values.max() < MOST_CODES:
            raise ValueError(f"codes from {values.min()} to {values.max()} do not fit into 16 bits")
        values = values.astype("<i2")
        entries = np.zeros(len(fresh), _ENTRY)
        entries["clip"] = [np.frombuffer(key.clip, np.uint8) for key in fresh]
        entries["top"] = [key.top for key in fresh]
        entries["codes"] = [len(each) for each in fresh.values()]
        with (self.folder / VALUES).open("ab") as file:
            # Behind whatever a killed process left there.
            begin = -(-file.tell() // BYTES)
            file.write(bytes(begin * BYTES - file.tell()) + values.tobytes())
        head = _HEAD.pack(_MAGIC, len(entries), begin, len(values), _sum(values.tobytes()))
        record = head + entries.tobytes()
        with (self.folder / INDEX).open("ab") as file:
            file.write(record + _sum(record))
        self._enter(entries, begin)
        self._end = begin + len(values)

    def _enter(self, entries: NDArray[np.void], begin: int) -> None:
        for clip, top, codes in entries.tolist():
            self._places[Key(bytes(clip), int(top))] = _Place(begin, codes)
            begin += codes


def open_cache(folder: Path, say: Say) -> CodeCache:
    """The cache in a folder, which is made if need be."""
    with telling(folder):
        make_folder(folder)
        for name in (VALUES, INDEX):
            (folder / name).touch()
    cache = CodeCache(folder)
    cache.read(say)
    return cache


@contextlib.contextmanager
def telling(folder: Path) -> Iterator[None]:
    """Says that the cache is at fault, and what would work."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        remedy = "name a folder that can be written: data.cache=FOLDER"
        if error.errno in _FULL:
            remedy = "make room there, or name another folder: data.cache=FOLDER"
        raise CacheError(
            f"the codes' cache {folder} cannot be kept ({why})",
            f"{remedy}\nencode at every step instead: --arrangement split, single or parallel",
        ) from None


def _records(raw: bytes) -> tuple[list[tuple[int, int, bytes, NDArray[np.void]]], int]:
    """First value, values, their sum and the entries of each whole record; and where they end."""
    found, at = [], 0
    while len(raw) >= at + _HEAD.size:
        magic, count, begin, values, wanted = _HEAD.unpack_from(raw, at)
        end = at + _HEAD.size + count * _ENTRY.itemsize
        if magic != _MAGIC or len(raw) < end + _SUM or _sum(raw[at:end]) != raw[end : end + _SUM]:
            break
        entries = np.frombuffer(raw, _ENTRY, count, at + _HEAD.size)
        found.append((begin, values, wanted, entries))
        at = end + _SUM
    return found, at


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SUM).digest()


def _content(file: Path) -> bytes:
    with telling(file.parent):
        return file.read_bytes()


def _mapped(file: Path) -> NDArray[np.int16]:
    """The values as they lie; NumPy maps no empty file."""
    with telling(file.parent):
        count = file.stat().st_size // BYTES
        # Copied on writing, which nobody does: TensorFlow takes no array that cannot be written.
        return np.memmap(file, "<i2", "c", shape=(count,)) if count else np.empty(0, np.int16)


def _hold(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CacheError(
            f"another training writes codes into {folder}",
            "wait until it has made them, or name a folder of its own: data.cache=FOLDER",
        ) from None


def _sync(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())


def _silent(_line: str) -> None:
    """What is wrong has been said when the cache was opened."""
