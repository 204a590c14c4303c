"""The networks of a model's folder, each built on the device that is to run it; and back."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from safetensors import SafetensorError
from safetensors.numpy import save_file

from myxtts.codec import Codec
from myxtts.config import ModelConfig
from myxtts.errors import UserError
from myxtts.gpt import Gpt
from myxtts.layers import Precision
from myxtts.model_folder.files import (
    MEL_STATS,
    PARTS,
    REFERENCE,
    REFERENCE_SETTINGS,
    SETTINGS,
    VOCABULARY,
    VOICES,
    Array,
    ModelFolder,
    settings_text,
)
from myxtts.model_folder.new_folder import new_folder
from myxtts.speaker import Speaker
from myxtts.vocoder import Vocoder
from myxtts.weights import load_weights, named_weights, save_weights

FLOAT_BYTES = 4
_BESIDE = (VOICES, REFERENCE, REFERENCE_SETTINGS)


def load_gpt(
    folder: ModelFolder, device: str, precision: Precision = "float32", *, recompute: bool = False
) -> Gpt:
    """The GPT with its conditioning."""
    with tf.device(device):
        gpt = Gpt(folder.model.gpt, precision, recompute=recompute)
        load_weights(gpt, folder.weights("gpt"))
    return gpt


def load_codec(folder: ModelFolder, device: str, precision: Precision = "float32") -> Codec:
    """The DVAE; a folder made of a download without dvae.pth has none."""
    with tf.device(device):
        codec = Codec(folder.model.codec, precision=precision)
        load_weights(codec, folder.weights("codec"))
    return codec


def load_vocoder(folder: ModelFolder, device: str, precision: Precision = "float32") -> Vocoder:
    """The HiFi-GAN, weight norm and all; `folded()` is the one to speak with."""
    model = folder.model
    with tf.device(device):
        vocoder = Vocoder(
            model.vocoder,
            latent_width=model.gpt.width,
            speaker_width=model.speaker.width,
            precision=precision,
        )
        load_weights(vocoder, folder.weights("vocoder"))
    return vocoder


def load_speaker(folder: ModelFolder, device: str, precision: Precision = "float32") -> Speaker:
    """The speaker encoder."""
    with tf.device(device):
        speaker = Speaker(folder.model.speaker, precision)
        load_weights(speaker, folder.weights("speaker"))
    return speaker


def save_model_folder(
    out: Path,
    model: ModelConfig,
    networks: Mapping[str, keras.Model],
    vocabulary: Path,
    mel_stats_M: Array,
) -> ModelFolder:
    """Writes a whole model, by part, into a folder that is there when all of it is."""
    size = FLOAT_BYTES * sum(_count(network) for network in networks.values())
    with new_folder(out, size) as made:
        folder = ModelFolder(made, model)
        for part, network in networks.items():
            _save(network, folder.file_of(part))
        save_file({"mel_stats": mel_stats_M.astype(np.float32)}, made / MEL_STATS)
        shutil.copyfile(vocabulary, made / VOCABULARY)
        (made / SETTINGS).write_text(settings_text(model), encoding="utf-8")
    return ModelFolder(out, model)


def save_learnt(out: Path, networks: Mapping[str, keras.Model], of: ModelFolder) -> ModelFolder:
    """Writes the folder again with other weights for some parts; the rest is copied as it is."""
    files = [of.file_of(part) for part in PARTS if part not in networks and of.has(part)]
    beside = (MEL_STATS, VOCABULARY, SETTINGS, *_BESIDE)
    files += [file for name in beside if (file := of.path / name).is_file()]
    size = FLOAT_BYTES * sum(_count(network) for network in networks.values())
    with new_folder(out, size + sum(file.stat().st_size for file in files)) as made:
        for part, network in networks.items():
            _save(network, ModelFolder(made, of.model).file_of(part))
        for file in files:
            shutil.copyfile(file, made / file.name)
    return ModelFolder(out, of.model)


def _save(network: keras.Model, file: Path) -> None:
    try:
        save_weights(network, file)
    except SafetensorError as error:  # Of a full disk too.
        raise UserError(f"{file.name} cannot be written: {error}", "make room there") from None


def _count(network: keras.Model) -> int:
    return sum(int(np.prod(variable.shape)) for variable in named_weights(network).values())
