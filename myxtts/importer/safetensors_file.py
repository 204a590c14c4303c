"""Safetensors files, read at places and written tensor by tensor.

The library writes a whole dict at once; here no more than one tensor is in memory. A file is
eight bytes of length, a JSON table {name: kind, shape, place}, and the numbers without a gap.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.importer.known import ITEM_BYTES, RefusedError, Storage, Tensor
from myxtts.importer.progress import Done
from myxtts.importer.slots import Slots
from myxtts.importer.source import Array, Block, Source, Weights, telling

KINDS = {
    "F64": "float64",
    "I64": "int64",
    "F32": "float32",
    "I32": "int32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
_CODES = {kind: code for code, kind in KINDS.items()}
LARGEST_TABLE = 8 << 20  # Bytes; a released model's has about 100 kB.
ALIGNED = 8


def read_table(source: Source) -> Weights:
    """The tensors of an open file."""
    with telling(source.file):
        (length,) = struct.unpack("<Q", source.read(0, 8))
        if length > LARGEST_TABLE:
            raise RefusedError(f"its table would have {length} bytes; it is no safetensors file")
        table = _parsed(bytes(source.read(8, length)))
        table.pop("__metadata__", None)
        blocks, tensors = {}, {}
        for name, entry in table.items():
            tensors[name], blocks[name] = _tensor(name, entry, 8 + length)
        _check_cover(blocks, 8 + length, source.size)
        return Weights(source, tensors, blocks)


def write_tensors(file: Path, slots: Slots, done: Done) -> None:
    """Writes the tensors one after the other; `done` hears of each one's bytes."""
    table, at = {}, 0
    for name, slot in slots.items():
        place = (at, at := at + slot.size)
        table[name] = {"dtype": _CODES[slot.kind], "shape": slot.shape, "data_offsets": place}
    head = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % ALIGNED)
    with file.open("xb", buffering=0) as handle:
        write_all(handle, struct.pack("<Q", len(head)) + head)
        for name, slot in slots.items():
            array = slot.read()
            if array.shape != slot.shape or array.dtype != slot.kind:
                raise ValueError(f"{name} is {array.dtype} {array.shape}, announced {slot}")
            write_all(handle, raw_bytes(array))
            done(slot.size)


def raw_bytes(array: Array) -> memoryview:
    """An array's numbers in the order they are written, little-endian."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8).data


def write_all(handle: Any, data: bytes | memoryview) -> None:
    """An unbuffered file may take a part of what it is given."""
    rest = memoryview(data)
    while rest:
        rest = rest[handle.write(rest) :]


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        table = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise RefusedError("its table is no JSON with one entry a name") from None
    if not isinstance(table, dict):
        raise RefusedError("its table is no JSON object")
    return table


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name twice")
    return table


def _tensor(name: str, entry: Any, start: int) -> tuple[Tensor, Block]:
    match entry:
        case {"dtype": str(code), "shape": list(shape), "data_offsets": [int(a), int(b)]}:
            good = code in KINDS and all(type(n) is int and 0 <= n < 1 << 62 for n in shape)
            if good and len(shape) <= 8 and 0 <= a <= b:
                count = 1
                for length in shape:
                    count *= length
                if count * ITEM_BYTES[KINDS[code]] == b - a:
                    tensor = Tensor(
                        Storage(KINDS[code], name, count), 0, tuple(shape), _dense(shape)
                    )
                    return tensor, Block(start + a, b - a)
    raise RefusedError(f"its entry {name[:200]!r} does not describe a tensor")


def _dense(shape: list[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def _check_cover(blocks: Mapping[str, Block], start: int, end: int) -> None:
    for block in sorted(blocks.values(), key=lambda block: (block.start, block.length)):
        if block.start != start:
            raise RefusedError("its tensors overlap or leave a gap")
        start += block.length
    if start != end:
        raise RefusedError(f"it has {end} bytes, and its table describes {start}")
