"""Makes a download of XTTS-v2's exact names, shapes and files, out of random numbers.

    .venv/bin/python benchmarks/synthetic_xtts.py /tmp/synthetic

model.pth has 1.9 GB, dvae.pth 0.2 GB. No number is the released model's: what comes of it is
noise, and as fast and as large as the real one.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from myxtts.config import ModelConfig
from myxtts.importer.reading import IN_MODEL, LATENTS_OF_THEIRS, SPEAKER_OF_THEIRS
from myxtts.importer.reference_settings import settings_text
from myxtts.importer.shapes import LATENTS, MELS, rows
from myxtts.importer.slots import Shape, Slot, Slots
from myxtts.importer.source import Array
from myxtts.importer.torch_writer import Tree, write_torch
from myxtts.importer.writing import HISTOGRAMS, made_buffers
from myxtts.text.vocabulary import SPECIAL, Vocabulary, write_vocabulary

SPREAD = 0.02
VOICES = ("Noise One", "Noise Two")
TAGS = {"[STOP]": 0, "[UNK]": 1, "[SPACE]": 2, "[START]": 261, "[en]": 259}
FIRST_LETTER = 0x4E00  # So many letters follow one another there that each token gets its own.


def write_download(folder: Path, model: ModelConfig) -> list[Path]:
    """The six files, as torch.save and the reference would have written them."""
    folder.mkdir(parents=True, exist_ok=True)
    buffers = dict(made_buffers(rows("speaker", model), model.codec.codes))
    weights = {**_weights(model, *IN_MODEL), **_of(buffers, codec=False)}
    trees: dict[str, Tree] = {
        "model.pth": {"model": {**weights, "mel_stats": _slot("mel_stats", (MELS,))}},
        "dvae.pth": {**_weights(model, "codec"), **_of(buffers, codec=True)},
        "mel_stats.pth": _slot("mel_stats", (MELS,)),
        "speakers_xtts.pth": dict(_voices(model)),
    }
    for name, tree in trees.items():
        (folder / name).unlink(missing_ok=True)
        write_torch(folder / name, tree, lambda _count: None)
    (folder / "config.json").write_text(settings_text(model, None), encoding="utf-8")
    write_vocabulary(_vocabulary(model.gpt.text_tokens), folder / "vocab.json")
    return [folder / name for name in (*trees, "config.json", "vocab.json")]


def _weights(model: ModelConfig, *parts: str) -> Slots:
    table = [row for part in parts for row in rows(part, model)]
    return {row.theirs: _slot(row.theirs, row.shape_of_theirs) for row in table}


def _of(buffers: Slots, *, codec: bool) -> Slots:
    return {name: s for name, s in buffers.items() if name.startswith(HISTOGRAMS) == codec}


def _slot(name: str, shape: Shape) -> Slot:
    return Slot("float32", shape, lambda: _numbers(name, shape))


def _numbers(name: str, shape: Shape) -> Array:
    """Small numbers around 0, around 1 for what scales or divides; a name's are always the same."""
    draw = np.random.default_rng(list(name.encode()))
    numbers = draw.standard_normal(shape, np.float32)
    numbers *= SPREAD
    scales = len(shape) == 1 and name.endswith((".weight", ".gamma", "running_var", "mel_stats"))
    if scales or name.endswith("original0"):
        numbers += 1
    return numbers


def _voices(model: ModelConfig) -> Iterator[tuple[str, Slots]]:
    parts = {
        LATENTS_OF_THEIRS: (1, LATENTS, model.gpt.width),
        SPEAKER_OF_THEIRS: (1, model.speaker.width, 1),
    }
    for voice in VOICES:
        yield voice, {part: _slot(f"{voice}.{part}", shape) for part, shape in parts.items()}


def _vocabulary(count: int) -> Vocabulary:
    taken = set(TAGS.values())
    others = (number for number in range(count) if number not in taken)
    tokens = {chr(FIRST_LETTER + number): number for number in others}
    return Vocabulary({**TAGS, **tokens}, [], [*SPECIAL, "[en]"])


def main() -> None:
    """Writes the files and says how large they are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="big", choices=("tiny", "small", "normal", "big"))
    options = parser.parse_args()
    start = time.perf_counter()
    files = write_download(options.folder, ModelConfig(size=options.size))
    for file in files:
        print(f"{file}: {file.stat().st_size / 1e6:,.1f} MB")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
