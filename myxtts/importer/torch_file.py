"""Files of torch.save, both layouts, as records of where each tensor's numbers lie.

Since torch 1.6 a file is a zip: FOLDER/data.pkl is the pickle, FOLDER/data/KEY a storage's bytes.
Before, it was five pickles in a row (a magic number, a version, the machine, the object, the
storages' keys), then for each key the count of numbers and the numbers.
"""

import contextlib
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from myxtts.importer.known import ITEM_BYTES, RefusedError, Storage, Tensor
from myxtts.importer.pickles import LARGEST, read_pickle
from myxtts.importer.source import Block, Source, Weights, open_source, telling
from myxtts.importer.zips import read_members

OLD_MAGIC = 0x1950A86A20F9469CFC6C
OLD_VERSION = 1001
_OLD_START = b"\x80\x02\x8a\n" + OLD_MAGIC.to_bytes(10, "little") + b"."
_ENDS = {b"little": False, b"big": True}


@contextlib.contextmanager
def open_torch(file: Path) -> Iterator[tuple[Any, Weights]]:
    """The object in the file, and the storages that its tensors look into.

    The weights have no names yet: `named` gives them those that the object has for them.
    """
    with open_source(file) as source:
        with telling(file):
            opened = _open(source)
        yield opened


def named(weights: Weights, tensors: Mapping[str, Tensor]) -> Weights:
    """The same file with its tensors under these names, each checked against its storage."""
    with telling(weights.file):
        for name, tensor in tensors.items():
            _check_length(name, tensor.storage, weights.blocks)
    return Weights(weights.source, tensors, weights.blocks, weights.big_endian)


def _open(source: Source) -> tuple[Any, Weights]:
    start = bytes(source.read(0, min(source.size, len(_OLD_START))))
    if start.startswith(b"PK\3\4"):
        return _open_zip(source)
    if start == _OLD_START:
        return _open_old(source)
    raise RefusedError(
        "it is no file of torch.save",
        "give the file as it was downloaded; a web page or a git-lfs pointer may lie in its place",
    )


def _open_zip(source: Source) -> tuple[Any, Weights]:
    members = read_members(source)
    pickles = [name for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise RefusedError(f"it has {len(pickles)} members data.pkl, a file of torch.save has one")
    folder = pickles[0].removesuffix("data.pkl")
    value, end = read_pickle(_member(source, members[pickles[0]], pickles[0], LARGEST))
    if end != members[pickles[0]].length:
        raise RefusedError("something lies behind the end of its pickle")
    order = members.get(f"{folder}byteorder")
    ends = b"little" if order is None else _member(source, order, "byteorder", 16)
    if ends not in _ENDS:
        raise RefusedError(f"its order of bytes is {ends!r}, neither little nor big")
    prefix = f"{folder}data/"
    blocks = {n.removeprefix(prefix): b for n, b in members.items() if n.startswith(prefix)}
    return value, Weights(source, {}, blocks, _ENDS[ends])


def _member(source: Source, block: Block, name: str, largest: int) -> bytes:
    if block.length > largest:
        raise RefusedError(
            f"its member {name} has {block.length} bytes, {largest} at most are read"
        )
    data = source.read(block.start, block.length)
    source.check(block, name, data)
    return bytes(data)


def _open_old(source: Source) -> tuple[Any, Weights]:
    data = bytes(source.read(0, min(source.size, LARGEST)))
    _, at = read_pickle(data)
    version, at = read_pickle(data, at)
    machine, at = read_pickle(data, at)
    if version != OLD_VERSION:
        raise RefusedError("it is of a layout that torch no longer reads")
    if not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise RefusedError("it was written by a machine with another order of bytes")
    value, at = read_pickle(data, at)
    keys, at = read_pickle(data, at)
    storages = {tensor.storage.key: tensor.storage for tensor in _tensors(value)}
    return value, Weights(source, {}, dict(_old_blocks(source, keys, storages, at)))


def _old_blocks(
    source: Source, keys: Any, storages: Mapping[str, Storage], at: int
) -> Iterator[tuple[str, Block]]:
    """Walks over the storages, whose lengths only their tensors' kinds tell."""
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise RefusedError("its list of storages is none")
    if len(set(keys)) != len(keys):
        raise RefusedError("its list of storages has one of them twice")
    for key in keys:
        (count,) = struct.unpack("<q", source.read(at, 8))
        if key not in storages or storages[key].count != count:
            raise RefusedError(f"its storage {key[:200]!r} is not the one its tensors look into")
        length = count * ITEM_BYTES[storages[key].kind]
        if at + 8 + length > source.size:
            raise RefusedError(f"it breaks off in its storage {key[:200]!r}")
        yield key, Block(at + 8, length)
        at += 8 + length


def _tensors(value: object) -> Iterator[Tensor]:
    """Every tensor anywhere in the object, each container looked into once."""
    waiting, seen = [value], set()
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, Tensor):
            yield holder
        elif isinstance(holder, dict | list | tuple) and id(holder) not in seen:
            seen.add(id(holder))
            waiting += holder.values() if isinstance(holder, dict) else holder


def _check_length(name: str, storage: Storage, blocks: Mapping[str, Block]) -> None:
    if storage.key not in blocks:
        raise RefusedError(f"the numbers of {name} are not in the file")
    length = storage.count * ITEM_BYTES[storage.kind]
    if blocks[storage.key].length != length:
        raise RefusedError(
            f"the storage of {name} has {blocks[storage.key].length} bytes, "
            f"and {storage.count} numbers of {storage.kind} are {length}"
        )
