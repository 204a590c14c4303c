"""`myxtts export`: a model's folder becomes files that the reference loads.

Names, shapes and kinds are the reference's; what came through `myxtts import` leaves bit-same.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from myxtts.config import ModelConfig
from myxtts.config.problems import one_line
from myxtts.importer.parts import MisfitError, Wanted, check_fit, to_theirs
from myxtts.importer.progress import Say, show_bytes
from myxtts.importer.reading import IN_MODEL, LATENTS_OF_THEIRS, MEL, SPEAKER_OF_THEIRS
from myxtts.importer.reference_settings import settings_text
from myxtts.importer.safetensors_file import read_table, write_tensors
from myxtts.importer.shapes import LATENTS, MELS, PREFIXES, Row, rows
from myxtts.importer.slots import Slot, Slots, slot_of, slot_with
from myxtts.importer.source import Weights, open_source
from myxtts.importer.state import BUFFER
from myxtts.importer.torch_writer import Tree, write_torch
from myxtts.model_folder.files import (
    MEL_MEAN,
    MEL_STATS,
    PARTS,
    REFERENCE,
    REFERENCE_SETTINGS,
    VOICE,
    VOICES,
    ModelFolder,
    open_model_folder,
)
from myxtts.model_folder.new_folder import new_folder
from myxtts.text.vocabulary import read_vocabulary

HISTOGRAMS = "discrete_loss."
HISTOGRAM_STEPS = 100  # That the reference's flattening loss looks back.
_REMEDY = "name a folder that `myxtts import` or a training made"


def export_model(path: Path, out: Path, say: Say, *, pth: bool = False) -> None:
    """Makes `out`, whole or not at all: safetensors, or with `pth` what torch.load reads."""
    folder = open_model_folder(path)
    vocabulary = read_vocabulary(folder.vocabulary)
    given = path / REFERENCE_SETTINGS
    settings = settings_text(folder.model, given if given.is_file() else None)
    with _opened(folder) as files:
        size = sum(slot.size for slots in files.values() for slot in slots.values())
        with new_folder(out, size) as made, show_bytes(size, say) as done:
            for stem, slots in files.items():
                if pth:
                    write_torch(made / f"{stem}.pth", _tree(stem, slots), done)
                else:
                    write_tensors(made / f"{stem}.safetensors", slots, done)
            (made / "config.json").write_text(settings, encoding="utf-8")
            shutil.copyfile(folder.vocabulary, made / "vocab.json")
        for line in _remarks(folder, len(vocabulary)):
            say(line)
        say(f"{out}: {', '.join(files)}, {size / 1e6:.0f} MB")


@contextmanager
def _opened(folder: ModelFolder) -> Iterator[dict[str, Slots]]:
    """The tensors of each file of the reference, by the file's name without its ending."""
    tables = {part: rows(part, folder.model) for part in PARTS}
    with ExitStack() as stack:

        def read(file: Path, wanted: Wanted) -> Weights:
            weights = read_table(stack.enter_context(open_source(file)))
            check_fit(weights, wanted, _REMEDY)
            return weights

        parts = {
            part: read(folder.weights(part), Wanted({row.ours: row.shape for row in tables[part]}))
            for part in PARTS
            if part != "codec" or folder.has("codec")
        }
        levels = Wanted({MEL: (MELS,)}, frozenset([MEL_MEAN]))
        stats = slot_of(read(folder.path / MEL_STATS, levels), MEL)
        kept = _kept(stack, folder, tables["speaker"])
        model = {MEL: stats, **_named(kept, codec=False)}
        files: dict[str, Slots] = {
            "model": {**_theirs(tables, parts, IN_MODEL), **model},
            "mel_stats": {MEL: stats},
        }
        if "codec" in parts:
            files["dvae"] = {**_theirs(tables, parts, ("codec",)), **_named(kept, codec=True)}
        if (folder.path / VOICES).is_file():
            files["speakers_xtts"] = _voices(stack, folder)
        yield files


def _theirs(
    tables: Mapping[str, list[Row]], weights: Mapping[str, Weights], parts: Sequence[str]
) -> Slots:
    return {name: s for part in parts for name, s in to_theirs(tables[part], weights[part]).items()}


def _kept(stack: ExitStack, folder: ModelFolder, speaker: list[Row]) -> Slots:
    """What the reference stores beside the weights: as it came, or as the reference makes it."""
    file = folder.path / REFERENCE
    if not file.is_file():
        return dict(made_buffers(speaker, folder.model.codec.codes))
    weights = read_table(stack.enter_context(open_source(file)))
    if strange := [name for name in weights.tensors if not BUFFER.match(name)]:
        raise MisfitError(f"{file} does not fit: unexpected {one_line(strange[0])}", _REMEDY)
    return {name: slot_of(weights, name) for name in weights.tensors}


def _named(kept: Slots, *, codec: bool) -> Slots:
    """Those of dvae.pth, or those of model.pth."""
    return {name: s for name, s in kept.items() if name.startswith(HISTOGRAMS) == codec}


def made_buffers(speaker: list[Row], codes: int) -> Iterator[tuple[str, Slot]]:
    """What the reference stores of a model that never was its own; `speaker` are its rows."""
    from myxtts.audio.filters import SPEAKER, filterbank, window  # noqa: PLC0415
    from myxtts.audio.mel import PREEMPHASIS  # noqa: PLC0415  Both bring TensorFlow.

    heard = filterbank(SPEAKER)
    bank = np.pad(heard, [(0, SPEAKER.fft // 2 + 1 - len(heard)), (0, 0)])
    emphasis = np.array([[[-PREEMPHASIS, 1]]], np.float32)
    encoder = PREFIXES["speaker"]
    yield f"{encoder}torch_spec.0.filter", slot_with(emphasis)
    yield f"{encoder}torch_spec.1.spectrogram.window", slot_with(window(SPEAKER))
    yield f"{encoder}torch_spec.1.mel_scale.fb", slot_with(bank)
    for row in speaker:
        if row.theirs.endswith(".running_var"):
            steps = row.theirs.removesuffix("running_var") + "num_batches_tracked"
            yield steps, slot_with(np.array(0, np.int64))
    for name in ("accumulator_index", "accumulator_filled"):
        yield HISTOGRAMS + name, slot_with(np.zeros(1, np.int64))
    yield f"{HISTOGRAMS}accumulator", slot_with(np.zeros((HISTOGRAM_STEPS, codes), np.float32))


def _voices(stack: ExitStack, folder: ModelFolder) -> Slots:
    weights = read_table(stack.enter_context(open_source(folder.path / VOICES)))
    parts = {"latents": (LATENTS, folder.model.gpt.width), "speaker": (folder.model.speaker.width,)}
    voices = dict.fromkeys(m[1] for name in weights.tensors if (m := VOICE.fullmatch(name)))
    wanted = {f"{voice}/{part}": shape for voice in voices for part, shape in parts.items()}
    check_fit(weights, Wanted(wanted), _REMEDY)
    slots: dict[str, Slot] = {}
    for voice in voices:
        latents, speaker = (slot_of(weights, f"{voice}/{part}") for part in parts)
        slots[f"{voice}.{LATENTS_OF_THEIRS}"] = latents.then(lambda x: x[None], (1, *latents.shape))
        slots[f"{voice}.{SPEAKER_OF_THEIRS}"] = speaker.then(
            lambda x: x[None, :, None], (1, *speaker.shape, 1)
        )
    return slots


def _tree(stem: str, slots: Slots) -> Tree:
    """How the reference nests the tensors of a file."""
    match stem:
        case "model":
            return {"model": slots}
        case "mel_stats":
            return slots[MEL]
        case "speakers_xtts":
            voices = dict.fromkeys(name.rpartition(".")[0] for name in slots)
            parts = (LATENTS_OF_THEIRS, SPEAKER_OF_THEIRS)
            return {v: {part: slots[f"{v}.{part}"] for part in parts} for v in voices}
    return slots


def _remarks(folder: ModelFolder, tokens: int) -> Iterator[str]:
    """Where the reference's own class would not take what is written."""
    model = folder.model
    sizes = (model.vocoder, model.speaker)
    released = ModelConfig(size="big")
    if sizes != (released.vocoder, released.speaker):
        yield (
            "the reference's Xtts class builds the released vocoder and speaker encoder only: "
            "load these into its classes one by one"
        )
    if tokens != model.gpt.text_tokens:
        yield (
            f"the reference's Xtts class takes the count of text tokens from vocab.json, {tokens}, "
            f"and the weights have {model.gpt.text_tokens}"
        )
    if not folder.has("codec"):
        yield "no dvae: this model has no codec"
