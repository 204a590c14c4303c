"""What 1,000 and 10,000 clips of one second take to prepare, plan and read.

    .venv/bin/python benchmarks/data_memory.py

Each size in a process of its own. "peak" is its greatest resident size, pages of mapped shards
included, which the kernel takes back when it needs them; the others are its own memory.
"""

import json
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

import numpy as np
from figures import held_mb

RATE = 22050


def write_clips(folder: Path, count: int) -> None:
    """An LJSpeech folder of tones, each of its own pitch, with silence at both ends."""
    (folder / "wavs").mkdir(parents=True)
    times = np.arange(RATE) / RATE
    shape = np.clip(np.minimum(times, 1 - times) / 0.1 - 0.5, 0, 1)
    with (folder / "metadata.csv").open("w", encoding="utf-8") as listed:
        for number in range(count):
            tone = np.sin(2 * np.pi * (100 + number / 10) * times) * shape * 9000
            with wave.open(str(folder / "wavs" / f"c{number}.wav"), "wb") as file:
                file.setparams((1, 2, RATE, 0, "NONE", ""))
                file.writeframes(tone.astype("<i2").tobytes())
            listed.write(f"c{number}|clip number {number}|clip number {number}\n")


def measure(folder: Path) -> dict[str, float]:
    """Prepares, plans and reads one epoch; seconds of each, and MB at the end of each."""
    from myxtts.clips import open_clips  # noqa: PLC0415  The parent has no use for TensorFlow.
    from myxtts.config import load_config  # noqa: PLC0415
    from myxtts.devices import open_devices, plan_devices  # noqa: PLC0415
    from myxtts.reader import read_batches  # noqa: PLC0415
    from myxtts.telemetry.record import Recorder  # noqa: PLC0415

    config = load_config(
        flags={"data.train": str(folder), "data.language": "en", "devices.emulate": 2}
    )
    plan = plan_devices(config.devices, [])
    open_devices(plan)
    figures = {"started_mb": held_mb("RssAnon")}
    start = time.perf_counter()
    reader = open_clips(config, 1, lambda _line: None)
    figures |= {"prepare_s": time.perf_counter() - start, "prepared_mb": held_mb("RssAnon")}
    start = time.perf_counter()
    numbers = range(reader.plan.batches_per_epoch)
    rows = sum(
        len(batch.clips)
        for batch in read_batches(reader, numbers, config.data, plan.data, Recorder())
    )
    figures |= {"read_s": time.perf_counter() - start, "read_mb": held_mb("RssAnon"), "rows": rows}
    return figures | {"mapped_mb": held_mb("RssFile"), "peak_mb": held_mb("VmHWM")}


def main() -> None:
    """One line for each size."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]))))
        return
    for count in (1000, 10000):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "data")
            write_clips(data, count)
            ran = subprocess.run(  # noqa: S603  Ourselves.
                [sys.executable, __file__, str(data)], check=True, capture_output=True, text=True
            )
            figures = json.loads(ran.stdout.splitlines()[-1])
        print(count, " ".join(f"{name} {value:.0f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
