"""Fine-tuning the GPT: adapters beside its matrices, rows for tokens that its vocabulary lacked.

While it learns both are weights of their own, so that what was there can stay as it is; in a
model's folder they are part of the weights that they belong to.
Legend: D width, V old tokens, A added tokens, I numbers in, O numbers out, R rank.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from myxtts.config import TrainingConfig
from myxtts.gpt import ADDED, Gpt
from myxtts.layers import Adapter
from myxtts.weights import load_weights, named_weights

Array = NDArray[Any]

TABLE = "text_embedding/table"
TOKEN_AXIS = {TABLE: 0, "text_head/kernel": 1, "text_head/bias": 0}
"""The weights that have a part for each token of the text, and where."""
DOWN, UP, KERNEL = "/down", "/up", "/kernel"
TUNED = (f"*{DOWN}", f"*{UP}", f"{ADDED}*")
"""What learns where adapters are asked for."""


def adapter_of(training: TrainingConfig) -> Adapter | None:
    """The adapters that the settings ask for."""
    return Adapter(training.lora_rank, training.lora_scale) if training.lora_rank else None


def tokens_of(file: Path) -> int:
    """How many tokens a GPT's file has vectors for."""
    with safe_open(file, framework="numpy") as stored:
        return int(stored.get_slice(TABLE).get_shape()[0])


def load_start(gpt: Gpt, file: Path, seed: int) -> None:
    """The weights of the file; adapters start as nothing, added rows as draws amid the old."""
    load_weights(gpt, file, wanted=lambda name: not _is_tuned(name))
    if gpt.added is None:
        return
    variables = named_weights(gpt)
    for place, (name, axis) in enumerate(TOKEN_AXIS.items()):
        added = variables[ADDED + name]
        old = variables[name].numpy()
        added.assign(drawn(old, added.shape[axis], axis, (seed, place)))


def drawn(old: Array, count: int, axis: int, key: tuple[int, int]) -> Array:
    """So many more along the axis, even numbers with the mean and spread of what is there."""
    mean, spread = (np.expand_dims(f(old, axis=axis), axis) for f in (np.mean, np.std))
    shape = list(old.shape)
    shape[axis] = count
    # Raw numbers of a named generator: NumPy may change how it draws, these it may not.
    raw = np.random.PCG64(key).random_raw(int(np.prod(shape))).reshape(shape)
    even = (raw >> np.uint64(11)) / 2**52 - 1  # From -1 to 1.
    return np.asarray(mean + even * np.sqrt(3) * spread, np.float32)


def merged(arrays: Mapping[str, Array], scale: float) -> dict[str, Array]:
    """The weights as a network without adapters and added rows has them."""
    whole = {name: array for name, array in arrays.items() if not _is_tuned(name)}
    for name, array in arrays.items():
        if name.startswith(ADDED):
            old = name.removeprefix(ADDED)
            whole[old] = np.concatenate([whole[old], array], TOKEN_AXIS[old])
        elif name.endswith(DOWN):
            layer = name.removesuffix(DOWN)
            more_IO = array.astype(np.float64) @ arrays[layer + UP]
            whole[layer + KERNEL] = (whole[layer + KERNEL] + scale * more_IO).astype(np.float32)
    return whole


def _is_tuned(name: str) -> bool:
    return name.startswith(ADDED) or name.endswith((DOWN, UP))
