"""A file of weights as places of bytes: what lies there is read when it is asked for."""

import contextlib
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - it teaches NumPy the word bfloat16.
import numpy as np
from numpy.typing import NDArray

from myxtts.errors import UserError
from myxtts.importer.known import ITEM_BYTES, RefusedError, Tensor

Array = NDArray[Any]
PIECE = 1 << 24  # Bytes read at once where only their checksum is wanted.


@dataclass(frozen=True)
class Block:
    """A storage's bytes in the file."""

    start: int
    length: int
    checksum: int = 0
    """The CRC-32 that the file gives; 0 where it gives none."""


@dataclass
class Source:
    """An open file, read at places; `size` is what it had when it was opened."""

    file: Path
    handle: FileIO
    size: int
    checked: set[int] = field(default_factory=set)
    """Starts of the blocks whose checksum was found right."""

    def read(self, start: int, length: int) -> bytearray:
        """The bytes at a place."""
        if start < 0 or length < 0 or start + length > self.size:
            raise RefusedError(f"it ends at byte {self.size}, before what it announces")
        taken = bytearray(length)
        self.fill(start, memoryview(taken))
        return taken

    def fill(self, start: int, room: memoryview) -> None:
        """Fills the room with the bytes from a place on."""
        self.handle.seek(start)
        filled = 0
        while filled < len(room):
            count = self.handle.readinto(room[filled:])
            if not count:
                raise RefusedError(f"it broke off at byte {start + filled} while it was read")
            filled += count

    def check(
        self, block: Block, name: str, data: bytes | bytearray | memoryview | None = None
    ) -> None:
        """Compares the checksum, unless that was done; `data` is the block if it is at hand."""
        if not block.checksum or block.start in self.checked:
            return
        found = 0 if data is None else zlib.crc32(data)
        for at in range(0, block.length if data is None else 0, PIECE):
            piece = self.read(block.start + at, min(PIECE, block.length - at))
            found = zlib.crc32(piece, found)
        if found != block.checksum:
            raise RefusedError(f"the bytes of {name} are not those that were written")
        self.checked.add(block.start)


@dataclass(frozen=True)
class Weights:
    """The tensors of one file by name, and where the storages of each lie."""

    source: Source
    tensors: Mapping[str, Tensor]
    blocks: Mapping[str, Block]
    big_endian: bool = False

    @property
    def file(self) -> Path:
        """The file they lie in."""
        return self.source.file

    def read(self, name: str) -> Array:
        """A tensor's numbers, as they lie in the file."""
        with telling(self.file):
            return self._read(name)

    def _read(self, name: str) -> Array:
        tensor = self.tensors[name]
        block, item = self.blocks[tensor.storage.key], ITEM_BYTES[tensor.kind]
        raw = np.empty(tensor.span * item, np.uint8)
        self.source.fill(block.start + tensor.offset * item, raw.data)
        self.source.check(block, name, raw.data if len(raw) == block.length else None)
        # Only NumPy's own kinds may be read in either order of bytes.
        bits = "uint16" if tensor.kind == "bfloat16" else tensor.kind
        numbers = raw.view(np.dtype(bits).newbyteorder(">" if self.big_endian else "<"))
        strides = [step * item for step in tensor.stride]
        laid = np.lib.stride_tricks.as_strided(numbers, tensor.shape, strides, writeable=False)
        return laid.astype(np.dtype(bits), copy=False).view(tensor.kind)


@contextlib.contextmanager
def open_source(file: Path) -> Iterator[Source]:
    """Opens a file, and nothing that would make a reader wait."""
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            raise UserError(f"{file} is no file", "name the folder of the files you downloaded")
        handle = FileIO(file)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or 'cannot be opened'}") from None
    with handle:
        yield Source(file, handle, os.fstat(handle.fileno()).st_size)


@contextlib.contextmanager
def telling(file: Path) -> Iterator[None]:
    """Names the file in what is said of it."""
    try:
        yield
    except RefusedError as error:
        problem, remedy = error.problem, "download it again, from a place that you trust"
        if not problem.startswith(str(file)):
            problem = f"{file}: {problem}"
        raise RefusedError(problem, error.remedy or remedy) from None
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or 'cannot be read'}") from None
