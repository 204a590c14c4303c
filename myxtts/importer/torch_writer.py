"""Writes what torch.load reads, without torch: a zip of one pickle and each tensor's numbers."""

import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from myxtts.importer.known import STORAGES
from myxtts.importer.progress import Done
from myxtts.importer.safetensors_file import raw_bytes
from myxtts.importer.slots import Slot

_STORAGE_OF = {kind: name for name, kind in STORAGES.items()}
_FOLDER = "archive"


Tree = Mapping[str, "Tree"] | Slot
"""Dicts of dicts of tensors, or one tensor alone."""


def write_torch(file: Path, tree: Tree, done: Done) -> None:
    """Writes the tree; `done` hears of each tensor's bytes."""
    with zipfile.ZipFile(file, "x", zipfile.ZIP_STORED) as archive:
        slots = list(_slots(tree))
        archive.writestr(f"{_FOLDER}/data.pkl", b"\x80\x02" + _pickled(tree, slots) + b".")
        archive.writestr(f"{_FOLDER}/byteorder", "little")
        for key, slot in enumerate(slots):
            data = raw_bytes(slot.read())
            with archive.open(f"{_FOLDER}/data/{key}", "w", force_zip64=True) as member:
                member.write(data)
            done(len(data))
        archive.writestr(f"{_FOLDER}/version", "3\n")


def _slots(tree: Tree) -> Iterator[Slot]:
    if isinstance(tree, Slot):
        yield tree
        return
    for branch in tree.values():
        yield from _slots(branch)


def _pickled(tree: Tree, slots: list[Slot]) -> bytes:
    keys = {id(slot): str(key) for key, slot in enumerate(slots)}

    def pickled(branch: Tree) -> bytes:
        if isinstance(branch, Slot):
            return _tensor(branch, keys[id(branch)])
        items = b"".join(_text(name) + pickled(below) for name, below in branch.items())
        return b"}(" + items + b"u"

    return pickled(tree)


def _tensor(slot: Slot, key: str) -> bytes:
    count = int(np.prod(slot.shape, dtype=np.int64))
    strides = [int(np.prod(slot.shape[n + 1 :], dtype=np.int64)) for n in range(len(slot.shape))]
    storage = f"ctorch\n{_STORAGE_OF[slot.kind]}\n".encode()
    address = (
        b"(" + _text("storage") + storage + _text(key) + _text("cpu") + _integer(count) + b"tQ"
    )
    layout = _integer(0) + _integers(slot.shape) + _integers(strides)
    hooks = b"\x89ccollections\nOrderedDict\n)R"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + address + layout + hooks + b"tR"


def _text(text: str) -> bytes:
    raw = text.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def _integer(number: int) -> bytes:
    if number < 1 << 31:
        return b"J" + struct.pack("<i", number)
    return b"\x8a\x08" + struct.pack("<q", number)


def _integers(numbers: tuple[int, ...] | list[int]) -> bytes:
    return b"(" + b"".join(_integer(number) for number in numbers) + b"t"
