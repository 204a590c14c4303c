"""Tensors on their way from one file into another: what each will be, read at its turn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from myxtts.importer.known import ITEM_BYTES
from myxtts.importer.source import Array, Weights

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Slot:
    """A tensor that `read` gives when it is its turn to be written."""

    kind: str
    shape: Shape
    read: Callable[[], Array]

    @property
    def size(self) -> int:
        """Its numbers in bytes."""
        count = 1
        for length in self.shape:
            count *= length
        return count * ITEM_BYTES[self.kind]

    def then(self, change: Callable[[Array], Array], shape: Shape) -> "Slot":
        """The same tensor, laid out otherwise when it is read."""
        return Slot(self.kind, shape, lambda: change(self.read()))


Slots = Mapping[str, Slot]
"""The tensors of one file by name, in the order they are written."""


def slot_of(weights: Weights, name: str) -> Slot:
    """A tensor of an open file, as it is there."""
    tensor = weights.tensors[name]
    return Slot(tensor.kind, tensor.shape, lambda: weights.read(name))


def slot_with(array: Array) -> Slot:
    """A tensor that is in memory."""
    return Slot(array.dtype.name, array.shape, lambda: array)
