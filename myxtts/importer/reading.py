"""`myxtts import`: the reference's files become a model's folder, one tensor at a time.

Everything is looked at before anything is written: sizes, names, shapes, kinds, room on the disk.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.config import ModelConfig
from myxtts.importer.known import ITEM_BYTES
from myxtts.importer.parts import Wanted, check_fit, to_ours
from myxtts.importer.progress import Say, show_bytes
from myxtts.importer.reference_settings import ARGUMENTS, read_settings
from myxtts.importer.safetensors_file import write_tensors
from myxtts.importer.shapes import LATENTS, MELS, Row, rows
from myxtts.importer.sizes import check_constants, disagreements, read_sizes
from myxtts.importer.slots import Slot, Slots, slot_of
from myxtts.importer.source import Array, Weights
from myxtts.importer.state import (
    BUFFER,
    State,
    find,
    open_codec,
    open_mel_stats,
    open_model,
    open_voices,
)
from myxtts.model_folder.files import (
    MEL_STATS,
    PARTS,
    REFERENCE,
    REFERENCE_SETTINGS,
    SETTINGS,
    VOCABULARY,
    VOICES,
    ModelFolder,
    settings_text,
)
from myxtts.model_folder.new_folder import new_folder
from myxtts.text.vocabulary import Vocabulary, read_vocabulary

MEL = "mel_stats"
LATENTS_OF_THEIRS, SPEAKER_OF_THEIRS = "gpt_cond_latent", "speaker_embedding"
IN_MODEL = ("gpt", "vocoder", "speaker")
_OPTIONAL: Mapping[str, Callable[[Path], AbstractContextManager[Any]]] = {
    "dvae": open_codec,
    "mel_stats": open_mel_stats,
    "speakers_xtts": open_voices,
}
_WITHOUT = {
    "dvae": "the model has no codec, which it needs to learn and not to speak",
    "mel_stats": "the mel_stats in model.pth are used",
    "speakers_xtts": "the model has no ready-made voices, only those of recordings",
}
_REMEDY = "give the files of one and the same XTTS-v2, as they were downloaded"
_CLOSE = 1e-2  # Of a level: what rounding to 16 bits may have done to it.


@dataclass(frozen=True)
class Given:
    """The files of a download, open."""

    model: State
    codec: State | None
    mel_stats: Weights | None
    voices: Weights | None
    settings: Path
    arguments: Mapping[str, Any]
    vocabulary: Vocabulary


def import_model(folder: Path, out: Path, say: Say) -> ModelFolder:
    """Makes `out`, whole or not at all, and tells what it found and what it left out."""
    with _opened(folder) as given:
        codec = None if given.codec is None else given.codec.shapes
        model = read_sizes(given.model.shapes, codec, given.arguments, given.vocabulary)
        check_constants(model, given.arguments)
        tables = {part: rows(part, model) for part in PARTS}
        _check_fit(given, model, tables)
        files = _files(given, tables)
        for line in _remarks(given, model):
            say(line)
        strange = _write(out, files, given, model, say)
    say(f"{out}: {_described(model, files)}")
    for line in strange:
        say(line)
    return ModelFolder(out, model)


@contextmanager
def _opened(folder: Path) -> Iterator[Given]:
    settings = folder / "config.json"
    with ExitStack() as stack:
        model = stack.enter_context(open_model(folder))
        codec, mel_stats, voices = (
            stack.enter_context(opener(folder)) if find(folder, stem) else None
            for stem, opener in _OPTIONAL.items()
        )
        arguments = read_settings(settings)[ARGUMENTS]
        vocabulary = read_vocabulary(folder / "vocab.json")
        yield Given(model, codec, mel_stats, voices, settings, arguments, vocabulary)


def _check_fit(given: Given, model: ModelConfig, tables: Mapping[str, list[Row]]) -> None:
    weights = given.model.weights
    shapes = {row.theirs: row.shape_of_theirs for part in IN_MODEL for row in tables[part]}
    if given.mel_stats is None or MEL in weights.tensors:
        shapes[MEL] = (MELS,)
    check_fit(weights, Wanted(shapes, _buffers(weights)), _REMEDY)
    if given.codec is not None:
        weights = given.codec.weights
        shapes = {row.theirs: row.shape_of_theirs for row in tables["codec"]}
        check_fit(weights, Wanted(shapes, _buffers(weights)), _REMEDY)
    if given.mel_stats is not None:
        check_fit(given.mel_stats, Wanted({MEL: (MELS,)}), _REMEDY)
    if given.voices is not None:
        parts = {
            LATENTS_OF_THEIRS: (1, LATENTS, model.gpt.width),
            SPEAKER_OF_THEIRS: (1, model.speaker.width, 1),
        }
        names = {name.rpartition(".")[0] for name in given.voices.tensors}
        shapes = {f"{name}.{part}": parts[part] for name in names for part in parts}
        check_fit(given.voices, Wanted(shapes), _REMEDY)


def _buffers(weights: Weights) -> frozenset[str]:
    return frozenset(name for name in weights.tensors if BUFFER.match(name))


def _files(given: Given, tables: Mapping[str, list[Row]]) -> dict[str, Slots]:
    """The tensors of each file that is written."""
    sources = dict.fromkeys(IN_MODEL, given.model.weights)
    kept = [given.model.weights]
    if given.codec is not None:
        sources["codec"] = given.codec.weights
        kept.append(given.codec.weights)
    files = {f"{p}.safetensors": to_ours(tables[p], sources[p]) for p in PARTS if p in sources}
    files[MEL_STATS] = {MEL: slot_of(given.mel_stats or given.model.weights, MEL)}
    files[REFERENCE] = {
        name: slot_of(weights, name) for weights in kept for name in sorted(_buffers(weights))
    }
    if given.voices is not None:
        files[VOICES] = dict(_voices(given.voices))
    return files


def _voices(voices: Weights) -> Iterator[tuple[str, Slot]]:
    for name in voices.tensors:
        voice, _, part = name.rpartition(".")
        slot = slot_of(voices, name)
        if part == LATENTS_OF_THEIRS:
            yield f"{voice}/latents", slot.then(lambda x: x[0], slot.shape[1:])
        else:
            yield f"{voice}/speaker", slot.then(lambda x: x[0, :, 0], slot.shape[1:2])


def _write(
    out: Path, files: Mapping[str, Slots], given: Given, model: ModelConfig, say: Say
) -> list[str]:
    """Writes everything; gives a line for each tensor with numbers that are none."""
    strange: list[str] = []
    size = sum(slot.size for slots in files.values() for slot in slots.values())
    with new_folder(out, size) as folder, show_bytes(size, say) as done:
        for name, slots in files.items():
            watched = {key: _watched(f"{name}: {key}", slots[key], strange) for key in slots}
            write_tensors(folder / name, watched, done)
        (folder / SETTINGS).write_text(settings_text(model), encoding="utf-8")
        shutil.copyfile(given.vocabulary.origin, folder / VOCABULARY)
        shutil.copyfile(given.settings, folder / REFERENCE_SETTINGS)
    return strange


def _watched(name: str, slot: Slot, strange: list[str]) -> Slot:
    def look(array: Array) -> Array:
        bad = 0 if array.dtype.kind in "iub" else int((~np.isfinite(array)).sum())
        if bad:
            strange.append(f"⚠ {name} has {bad} numbers that are not finite, of {array.size}")
        return array

    return slot.then(look, slot.shape)


def _remarks(given: Given, model: ModelConfig) -> Iterator[str]:
    present = {"dvae": given.codec, "mel_stats": given.mel_stats, "speakers_xtts": given.voices}
    for stem, without in _WITHOUT.items():
        if present[stem] is None:
            yield f"no {stem}.pth: {without}"
    for state in filter(None, (given.model, given.codec)):
        if state.dropped:
            some = ", ".join(state.dropped[:3]) + (" …" if len(state.dropped) > 3 else "")
            yield f"{state.weights.file.name}: left out {len(state.dropped)} copies: {some}"
    yield from disagreements(model, given.arguments)
    if len(given.vocabulary) < model.gpt.text_tokens:
        yield (
            f"vocab.json has {len(given.vocabulary)} tokens, the weights "
            f"{model.gpt.text_tokens}: the last ones are never used"
        )
    if given.mel_stats is not None and MEL in given.model.weights.tensors:
        yield from _levels(given.mel_stats.read(MEL), given.model.weights.read(MEL))


def _levels(training: Array, speaking: Array) -> Iterator[str]:
    pair = (training.astype(np.float32), speaking.astype(np.float32))
    if not np.allclose(*pair, rtol=_CLOSE, atol=0):
        yield "⚠ mel_stats.pth differs from the mel_stats in model.pth, and is the one that is used"


def _described(model: ModelConfig, files: Mapping[str, Slots]) -> str:
    gpt = model.gpt
    weights = (files.get(f"{part}.safetensors", {}) for part in PARTS)
    count = sum(slot.size // ITEM_BYTES[slot.kind] for slots in weights for slot in slots.values())
    voices = len(files.get(VOICES, {})) // 2
    return (
        f"{gpt.layers} blocks of width {gpt.width}, {gpt.text_tokens} text tokens, "
        f"{model.codec.codes} codes, {count / 1e6:.1f} M numbers, {voices} voices"
    )
