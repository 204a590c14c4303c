"""The reference's numbers, and its weights in our networks (../tests/golden, XTTS.md)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from myxtts.importer.names import Name
from myxtts.weights import assign_weights

FOLDER = Path(__file__).parent / "golden"
WITHIN = 1e-4  # Of the largest value: float32 sums in another order.

Array = NDArray[Any]


def golden(name: str) -> dict[str, Array]:
    """A file of the reference's inputs ("in.…") and outputs ("out.…")."""
    return load_file(FOLDER / f"{name}.safetensors")


def give_golden_weights(
    network: keras.Model, file: str, names: Iterable[Name], prefix: str = ""
) -> None:
    """Puts the reference's random weights into a network of the same sizes."""
    theirs = golden(file)
    arrays = {
        name.ours: name.layout.ours(theirs[prefix + name.theirs].astype(np.float32))
        for name in names
    }
    assign_weights(network, arrays, file)


def distance(ours: Any, theirs: Array) -> float:
    """The largest difference, as a part of the reference's largest value."""
    assert ours.shape == theirs.shape, f"{ours.shape} is not {theirs.shape}"
    difference = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64))
    return float(difference.max() / np.abs(theirs).max())
