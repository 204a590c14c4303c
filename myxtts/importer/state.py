"""The tensors of the reference's files under the names of today, whatever the file's age.

Files come as torch.save wrote them, or as `myxtts export` did: the same names in safetensors.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from myxtts.errors import UserError
from myxtts.importer.known import RefusedError, Tensor
from myxtts.importer.safetensors_file import read_table
from myxtts.importer.source import Weights, open_source, telling
from myxtts.importer.torch_file import named, open_torch

_MERE_COPIES = re.compile(
    r"dvae\.|torch_mel_spectrogram_|gpt\.gpt_inference\.|gpt\.gpt\.wte\.weight$"
    r"|gpt\.gpt\.h\.\d+\.attn\.(bias|masked_bias)$"
)
"""What trainers, XTTS-v1 and older libraries leave in a file: copies and masks."""
BUFFER = re.compile(
    r"mel_stats$|discrete_loss\."
    r"|hifigan_decoder\.speaker_encoder\.(torch_spec\.|.*\.num_batches_tracked$)"
)
"""What the reference stores and recomputes or never reads: kept aside, for the export."""
_OLD_WEIGHT_NORM = {
    ".weight_g": ".parametrizations.weight.original0",
    ".weight_v": ".parametrizations.weight.original1",
}
_TRAINER = "xtts."
LONGEST_NAME = 500


@dataclass(frozen=True)
class State:
    """A file's tensors by the reference's names of today."""

    weights: Weights
    dropped: tuple[str, ...]
    """Names that were left out."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor's shape."""
        return {name: tensor.shape for name, tensor in self.weights.tensors.items()}


@contextlib.contextmanager
def open_model(folder: Path) -> Iterator[State]:
    """model.pth: the GPT, the vocoder, the speaker encoder and mel_stats."""
    with _open(folder, "model") as (value, weights):
        inner = value.get("model", value) if isinstance(value, dict) else value
        with telling(weights.file):
            yield _state(weights, _flat(inner))


@contextlib.contextmanager
def open_codec(folder: Path) -> Iterator[State]:
    """dvae.pth: the codec alone."""
    with _open(folder, "dvae") as (value, weights), telling(weights.file):
        yield _state(weights, _flat(value))


@contextlib.contextmanager
def open_mel_stats(folder: Path) -> Iterator[Weights]:
    """mel_stats.pth: one tensor without a name, here called mel_stats."""
    with _open(folder, "mel_stats") as (value, weights):
        tensors = {"mel_stats": value} if isinstance(value, Tensor) else value
        with telling(weights.file):
            yield named(weights, _flat(tensors))


@contextlib.contextmanager
def open_voices(folder: Path) -> Iterator[Weights]:
    """speakers_xtts.pth: two tensors a voice, here called VOICE.gpt_cond_latent and so on."""
    with _open(folder, "speakers_xtts") as (value, weights), telling(weights.file):
        if not isinstance(value, dict):
            raise RefusedError("it holds no voices by name")
        flat: dict[str, Any] = {}
        for name, parts in value.items():
            below = parts.items() if isinstance(parts, dict) else [("", parts)]
            flat |= {f"{name}.{part}" if part else str(name): one for part, one in below}
        yield named(weights, _flat(flat))


def find(folder: Path, stem: str) -> Path | None:
    """The file of that name in either form."""
    present = [f for ending in (".pth", ".safetensors") if (f := folder / (stem + ending)).exists()]
    if len(present) > 1:
        raise UserError(f"{folder} has both {present[0].name} and {present[1].name}", "remove one")
    return present[0] if present else None


@contextlib.contextmanager
def _open(folder: Path, stem: str) -> Iterator[tuple[Any, Weights]]:
    file = find(folder, stem)
    if file is None:
        raise UserError(f"{folder} has no {stem}.pth", "name the folder of the downloaded files")
    if file.suffix == ".pth":
        with open_torch(file) as opened:
            yield opened
    else:
        with open_source(file) as source:
            weights = read_table(source)
            yield dict(weights.tensors), weights


def _flat(value: Any) -> dict[str, Tensor]:
    if not isinstance(value, dict) or not value:
        raise RefusedError("it holds no tensors by name")
    for name, tensor in value.items():
        # A name is repeated in messages, where codes for a terminal have no place.
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
            raise RefusedError(f"it has a tensor whose name is none: {str(name)[:100]!r}")
        if not isinstance(tensor, Tensor):
            raise RefusedError(f"its entry {name!r} is no tensor")
    return value


def _state(weights: Weights, tensors: Mapping[str, Tensor]) -> State:
    kept: dict[str, Tensor] = {}
    dropped = []
    for name, tensor in tensors.items():
        today = _name_of_today(name)
        if _MERE_COPIES.match(today):
            dropped.append(name)
        elif today in kept:
            raise RefusedError(f"it has {today} under two names")
        else:
            kept[today] = tensor
    return State(named(replace(weights), kept), tuple(dropped))


def _name_of_today(name: str) -> str:
    name = name.removeprefix(_TRAINER)
    for old, today in _OLD_WEIGHT_NORM.items():
        if name.endswith(old):
            return name.removesuffix(old) + today
    return name
