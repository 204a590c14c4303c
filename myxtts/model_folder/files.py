"""A model's folder: which file holds what. Reads everything but the networks' weights.

Legend: M mel bands, L vectors of a voice, D the GPT's width, S width of a speaker vector.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from myxtts.config import ModelConfig, load_config
from myxtts.config.yaml_text import dump
from myxtts.errors import UserError

Array = NDArray[Any]

PARTS = ("gpt", "codec", "vocoder", "speaker")
SETTINGS = "config.yaml"
MEL_STATS = "mel_stats.safetensors"
MEL_MEAN = "mel_mean"
"""Each band's mean, beside its level in one file, where a training measured both."""
VOCABULARY = "vocab.json"
VOICES = "voices.safetensors"
REFERENCE = "reference.safetensors"
"""What the reference stores and nobody here reads: kept for the export."""
REFERENCE_SETTINGS = "reference.json"
MELS = 80
VOICE = re.compile(r"(.+)/(latents|speaker)", re.DOTALL)
_REMEDY = "name a folder that `myxtts import` or a training made"


@dataclass(frozen=True)
class Voice:
    """A ready-made voice: what the GPT and what the vocoder are told of it."""

    latents_LD: Array
    speaker_S: Array


@dataclass(frozen=True)
class ModelFolder:
    """A folder whose settings are read and whose files were there when it was opened."""

    path: Path
    model: ModelConfig

    def has(self, part: str) -> bool:
        """Whether the folder holds a part's weights; one without a codec can still speak."""
        return self.file_of(part).is_file()

    def weights(self, part: str) -> Path:
        """The file of a part's weights: gpt, codec, vocoder or speaker."""
        if not self.has(part):
            raise UserError(f"{self.path} has no {part}: {self.file_of(part).name}", _REMEDY)
        return self.file_of(part)

    def file_of(self, part: str) -> Path:
        """Where a part's weights lie, or would."""
        if part not in PARTS:
            raise ValueError(part)
        return self.path / f"{part}.safetensors"

    @property
    def vocabulary(self) -> Path:
        """The tokenizer's file."""
        return self.path / VOCABULARY

    def mel_stats(self) -> Array:
        """float32 (M,): each band's usual level, which mels are divided by."""
        (mel_stats_M,) = read_arrays(self.path / MEL_STATS, ["mel_stats"])
        if mel_stats_M.shape != (MELS,) or not (mel_stats_M > 0).all():
            raise UserError(f"{self.path / MEL_STATS} holds no {MELS} positive numbers", _REMEDY)
        return mel_stats_M.astype(np.float32)

    def voices(self) -> tuple[str, ...]:
        """Names of the ready-made voices, none where the folder has no such file."""
        if not (self.path / VOICES).is_file():
            return ()
        with _opened(self.path / VOICES) as stored:
            names = stored.keys()
        return tuple(sorted({match[1] for name in names if (match := VOICE.fullmatch(name))}))

    def voice(self, name: str) -> Voice:
        """A ready-made voice, float32."""
        known = self.voices()
        if name not in known:
            some = ", ".join(known[:20]) + (" …" if len(known) > 20 else "")
            raise UserError(f"{self.path} has no voice {name!r}", f"it has: {some or 'none'}")
        parts = [f"{name}/latents", f"{name}/speaker"]
        latents_LD, speaker_S = read_arrays(self.path / VOICES, parts)
        return Voice(latents_LD.astype(np.float32), speaker_S.astype(np.float32))


def open_model_folder(path: Path) -> ModelFolder:
    """Reads the settings, and says what of the rest is missing."""
    if not path.is_dir():
        raise UserError(f"{path} is no folder", _REMEDY)
    needed = (SETTINGS, MEL_STATS, VOCABULARY, "gpt.safetensors")
    if absent := [name for name in needed if not (path / name).is_file()]:
        raise UserError(f"{path} is no model's folder: it has no {', '.join(absent)}", _REMEDY)
    return ModelFolder(path, load_config(path / SETTINGS).model)


def settings_text(model: ModelConfig) -> str:
    """The text of config.yaml: the section `model` with every key."""
    return dump({"model": model.model_dump(mode="json")})


def read_arrays(file: Path, names: list[str]) -> list[Array]:
    """Some of a file's tensors."""
    with _opened(file) as stored:
        if absent := set(names) - set(stored.keys()):
            raise UserError(f"{file} has no {', '.join(sorted(absent))}", _REMEDY)
        return [stored.get_tensor(name) for name in names]


def _opened(file: Path) -> Any:
    try:
        return safe_open(file, framework="numpy")
    except SafetensorError as error:
        raise UserError(f"{file} is no safetensors file: {error}", _REMEDY) from None
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or 'cannot be read'}", _REMEDY) from None
