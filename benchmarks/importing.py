"""How long the import of a released-size download takes, in how much memory; and what comes of it.

    .venv/bin/python benchmarks/importing.py

Makes the synthetic download (2.1 GB), imports it, exports it in both forms, and runs the model that
came of it: one pass of the whole GPT, 20 codes, and their sound. Each in a process of its own,
whose peak the kernel counts. The files lie in the page cache when they are read.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import hand_out, held_mb, parser, spread, told
from synthetic_xtts import write_download

from myxtts.config import ModelConfig
from myxtts.importer.reading import import_model
from myxtts.importer.writing import export_model

LONGEST = 120.0
"""Seconds that an import may take."""
MOST_OF_A_FILE = 1.3
"""Peak memory of an import, as a share of the largest file."""
MOST_MB = 8192
"""Peak memory of a pass and 20 codes."""
LARGE_MB = 1000
"""The limits are those of the released size."""
CODES = 20
DEVICE = "/CPU:0"

Figures = dict[str, Any]


def bring_in(folder: Path) -> None:
    """The import."""
    import_model(folder / "download", folder / "model", _silent)


def bring_out(folder: Path) -> None:
    """The export, as safetensors."""
    export_model(folder / "model", folder / "back", _silent)


def bring_out_pth(folder: Path) -> None:
    """The export, as torch.load reads it."""
    export_model(folder / "model", folder / "back-pth", _silent, pth=True)


def speak(folder: Path) -> None:
    """All parts loaded, one pass of the GPT in training's form, 20 codes, and their sound."""
    import numpy as np  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415  Only here: an import needs no TensorFlow.

    from myxtts.config import DevicesConfig  # noqa: PLC0415
    from myxtts.devices import open_devices, plan_devices  # noqa: PLC0415
    from myxtts.gpt import lay_out  # noqa: PLC0415
    from myxtts.gpt.decoding import Decoder, Request  # noqa: PLC0415
    from myxtts.gpt.kinds import decoding_weights  # noqa: PLC0415
    from myxtts.gpt.sampling import GREEDY  # noqa: PLC0415
    from myxtts.model_folder.files import open_model_folder  # noqa: PLC0415
    from myxtts.model_folder.networks import (  # noqa: PLC0415
        load_codec,
        load_gpt,
        load_speaker,
        load_vocoder,
    )
    from myxtts.pipeline import Program  # noqa: PLC0415

    open_devices(plan_devices(DevicesConfig(emulate=1), []))
    model = open_model_folder(folder / "model")
    gpt, vocoder = load_gpt(model, DEVICE), load_vocoder(model, DEVICE)
    beside = load_codec(model, DEVICE), load_speaker(model, DEVICE)

    def whole(voice: Any, text: Any, lengths: Any, codes: Any, samples: Any) -> Any:
        return gpt(voice, lay_out(gpt.config, text, lengths, codes, samples)).audio_BYV

    voice = model.voice(model.voices()[0])
    text = list(range(300, 340))
    with tf.device(DEVICE):
        voice_BPD = tf.constant(voice.latents_LD[None])
        speaker_BS = tf.constant(voice.speaker_S[None])
        batch = [tf.constant([text]), tf.constant([len(text)]), tf.zeros([1, 50], tf.int32)]
        logits = Program(whole, DEVICE, jit=False)(voice_BPD, *batch, tf.constant([50 * 1024]))
        weights = decoding_weights(gpt, "float32", DEVICE)
    decoder = Decoder(gpt.config, weights, DEVICE)
    spoken = decoder.decode(Request(voice_BPD, [text], limit=CODES), GREEDY)
    sound = Program(vocoder.__call__, DEVICE, jit=False)(spoken.latent_BND, speaker_BS)
    finite = [bool(np.isfinite(each.numpy()).all()) for each in (logits, sound)]
    if not all(finite) or spoken.code_BN.shape[1] != CODES or len(beside) != 2:
        sys.exit(f"{spoken.code_BN.shape[1]} codes, finite: {finite}")


STAGES: dict[str, Callable[[Path], None]] = {
    "import": bring_in,
    "export": bring_out,
    "export --pth": bring_out_pth,
    "speak": speak,
}


def run(stage: str, folder: Path) -> Figures:
    """Seconds and peak MB of one stage, in a process of its own, its start included."""
    command = [sys.executable, __file__, "--stage", stage, "--folder", str(folder)]
    start = time.perf_counter()
    ran = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    seconds = time.perf_counter() - start
    if ran.returncode:
        sys.exit(f"{stage} failed:\n{ran.stderr[-3000:]}")
    return {"seconds": seconds, "peak_mb": float(ran.stdout.splitlines()[-1])}


def measure(folder: Path, size: str, rounds: int) -> Figures:
    """Every stage; what a round wrote makes room for the next."""
    files = write_download(folder / "download", ModelConfig.model_validate({"size": size}))
    taken: dict[str, list[Figures]] = {stage: [] for stage in STAGES}
    for _ in range(rounds):
        for stage, figures in taken.items():
            figures.append(run(stage, folder))
        for made in ("model", "back", "back-pth"):
            shutil.rmtree(folder / made)
    return {
        "largest_mb": max(file.stat().st_size for file in files) / 2**20,
        "stages": {
            stage: {key: spread([each[key] for each in figures]) for key in figures[0]}
            for stage, figures in taken.items()
        },
    }


def show(figures: Figures) -> None:
    """A line for each stage, and the targets."""
    stages, largest = figures["stages"], figures["largest_mb"]
    print(f"{'':14}{'s':>22}{'peak MB':>28}     largest file: {largest:,.0f} MB")
    for stage, row in stages.items():
        print(f"{stage:14}{told(row['seconds'], '.1f'):>22}{told(row['peak_mb']):>28}")
    limits = {
        "seconds of an import": (stages["import"]["seconds"], LONGEST),
        "MB of an import": (stages["import"]["peak_mb"], MOST_OF_A_FILE * largest),
        "MB of speaking": (stages["speak"]["peak_mb"], MOST_MB),
    }
    # Of a small file's import the interpreter alone is more than a third.
    for name, (figure, limit) in limits.items() if largest > LARGE_MB else ():
        word = "kept" if figure[2] <= limit else "MISSED"
        print(f"{word}: at most {limit:,.0f} {name}: {figure[2]:,.1f}")


def main() -> None:
    """All stages, or, in a process of its own, one of them."""
    arguments = parser(__doc__)
    arguments.add_argument("--size", default="big", choices=("tiny", "small", "normal", "big"))
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--folder", type=Path, help="where to work; it takes 9 GB")
    arguments.add_argument("--stage", choices=tuple(STAGES), help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.stage:
        STAGES[options.stage](options.folder)
        print(held_mb("VmHWM"))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        hand_out(measure(Path(folder), options.size, options.rounds), options, show)


def _silent(_line: str) -> None:
    pass


if __name__ == "__main__":
    main()
