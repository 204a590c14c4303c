"""Shard files as one stretch of memory, so that a batch may draw clips from all of them.

Choosing among tensors, one for each shard, halves the rate; in one tensor a clip's shard is
only a larger offset. The kernel maps files side by side when it is told where.
"""

import ctypes
import mmap
import os
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.errors import UserError

BYTES_PER_SAMPLE = 2
_MAP_FIXED = 0x10  # Linux and macOS; Python's mmap names no constant for it.
_FAILED = ctypes.c_void_p(-1).value
_AGAIN = "prepare the data again: myxtts prepare DATA --out DIR"


class MappingError(UserError):
    """A shard is not what its clips say, or cannot be mapped."""


def map_shards(
    shards: Sequence[Path], samples: Sequence[int]
) -> tuple[tf.Tensor, NDArray[np.int64]]:
    """All samples in one int16 tensor that reads the files, and where each shard begins in it.

    `samples` says how many of each shard are needed: touching a page beyond a file's end would
    kill the process, so a shorter file is refused. Shards must not be changed in place.
    """
    if sys.byteorder != "little":
        raise MappingError("shards are little-endian and this machine is not")
    room = [_whole_pages(count * BYTES_PER_SAMPLE) for count in samples]
    begins = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
    # Never empty, and without write permission: else the kernel would set memory aside for it.
    size = int(begins[-1]) + mmap.PAGESIZE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = (ctypes.c_int16 * (size // BYTES_PER_SAMPLE)).from_address(_map(None, size, flags))
    # Not at the interpreter's end, when a thread may still read; the kernel unmaps then.
    weakref.finalize(memory, _libc().munmap, ctypes.addressof(memory), size).atexit = False
    for path, count, begin in zip(shards, samples, begins, strict=False):
        _lay(path, count * BYTES_PER_SAMPLE, ctypes.addressof(memory) + int(begin))
    pcm = np.ctypeslib.as_array(memory)
    return tf.experimental.dlpack.from_dlpack(pcm.__dlpack__()), begins[:-1] // BYTES_PER_SAMPLE


def _lay(path: Path, needed: int, address: int) -> None:
    """Maps the first bytes of a file over reserved memory."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise MappingError(f"{path} cannot be read ({error.strerror})", _AGAIN) from None
    try:
        # Of the open file, so that no other can take its place in between.
        size = os.fstat(file).st_size
        if size < needed or size % BYTES_PER_SAMPLE:
            raise MappingError(f"{path} has {size} bytes, and its clips need {needed}", _AGAIN)
        if needed:
            _map(address, needed, mmap.MAP_SHARED | _MAP_FIXED, file)
    finally:
        os.close(file)


def _map(address: int | None, size: int, flags: int, file: int = -1) -> int:
    got: int = _libc().mmap(address, size, mmap.PROT_READ, flags, file, 0)
    if got == _FAILED:
        reason = os.strerror(ctypes.get_errno())
        raise MappingError(f"{size / 1e9:.1f} GB of shards cannot be mapped ({reason})")
    return got


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    number, size, pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
    libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_int64]
    libc.munmap.argtypes = [pointer, size]
    return libc


def _whole_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
