"""What a checkpoint holds: groups of arrays, and facts that JSON can hold.

This room knows of no stage and no network: a group is a name ("weights", "optimizer", "ema") and
arrays by name. An array is whatever has a shape and a dtype and becomes a NumPy array: one of
NumPy's, a variable of TensorFlow or Keras, or one that still lies in another checkpoint.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from ml_dtypes import bfloat16  # NumPy learns the name bfloat16 by this import.
from numpy.typing import NDArray

Array = NDArray[Any]
Group = Mapping[str, Any]
"""Arrays by name."""

WEIGHTS = "weights"
EMA = "ema"
KINDS = {
    "F64": np.dtype("float64"),
    "F32": np.dtype("float32"),
    "F16": np.dtype("float16"),
    "BF16": np.dtype(bfloat16),
    "I64": np.dtype("int64"),
    "I32": np.dtype("int32"),
    "I16": np.dtype("int16"),
    "I8": np.dtype("int8"),
    "U64": np.dtype("uint64"),
    "U32": np.dtype("uint32"),
    "U16": np.dtype("uint16"),
    "U8": np.dtype("uint8"),
    "BOOL": np.dtype("bool"),
}
"""The kinds of numbers that are saved, by the safetensors format's names."""
_CODES = {kind.name: code for code, kind in KINDS.items()}
_GROUP = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True)
class State:
    """A training run at one step: all that it takes to go on as if nothing had happened."""

    step: int
    groups: Mapping[str, Group]
    """One safetensors file each."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The settings, as JSON would give them back."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Stage, place in the plan, seeds, schedule, loss scale: as JSON would give them back."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What the checkpoint is judged by."""

    def __post_init__(self) -> None:
        if self.step < 0:
            raise ValueError(f"a step of {self.step}")
        for name, group in self.groups.items():
            if not _GROUP.fullmatch(name):
                raise ValueError(f"a group's name is small letters, not {name!r}")
            for array in group:
                outline(group[array], f"{name}/{array}")
        for what, mapping in (("config", self.config), ("facts", self.facts)):
            _check_json(what, mapping)

    @property
    def bytes(self) -> int:
        """How much room its arrays take, in memory as on the disk."""
        arrays = (array for group in self.groups.values() for array in group.values())
        return sum(KINDS[code].itemsize * prod(shape) for code, shape in map(outline, arrays))

    def on_host(self) -> "State":
        """A copy of every array in the host's memory, which a later step does not change."""
        groups = {
            name: {key: np.array(fetched(array)) for key, array in group.items()}
            for name, group in self.groups.items()
        }
        return replace(self, groups=groups)


def outline(array: Any, name: str = "an array") -> tuple[str, tuple[int, ...]]:
    """An array's kind, by the file's name for it, and its shape, without fetching it."""
    kind = array.dtype if isinstance(array.dtype, str) else array.dtype.name
    if kind not in _CODES:
        raise ValueError(f"{name} has numbers of kind {kind}, which no checkpoint holds")
    return _CODES[kind], tuple(int(length) for length in array.shape)


def fetched(array: Any) -> Array:
    """The array's numbers as NumPy's; one of NumPy's own is not copied."""
    return np.asarray(array.numpy() if hasattr(array, "numpy") else array)


def _check_json(what: str, mapping: Mapping[str, Any]) -> None:
    """Raises for what would come back as something else: a tuple, a Path, a number as a key."""
    for key, value in mapping.items():
        try:
            text = json.dumps(value, allow_nan=False)
            same = isinstance(key, str) and json.loads(text) == value
        except (TypeError, ValueError, RecursionError):
            same = False
        if not same:
            raise ValueError(f"{what}[{key!r}] does not come back from JSON as it is: {value!r}")
