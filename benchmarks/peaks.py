"""The most memory that a process takes which only makes training steps, as the clips grow.

    .venv/bin/python benchmarks/peaks.py
    .venv/bin/python benchmarks/peaks.py --reference REF/bin/python SCRIPT

Each figure is the greatest resident size of a process of its own: framework, weights, AdamW and
all. So read how it grows; what the forms of attention take by themselves is in attention.py.
Legend: positions are those of one row: 32 of the voice, the text's and the codes' with their ends.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import hand_out, parser

TEXT = 64
BATCH = 8
ENDS = 32 + 2 + 5
STEPS = 2

Figures = dict[str, dict[str, float]]


def steps(size: str, codes: int, *, recompute: bool) -> None:
    """What the process does whose memory is measured."""
    from arms import DEVICE, SIZES  # noqa: PLC0415  The parent has no use for TensorFlow.
    from step import Lengths, TrainingStep  # noqa: PLC0415

    from myxtts.config import Config, DevicesConfig, ModelConfig, TrainingConfig  # noqa: PLC0415
    from myxtts.devices import open_devices, plan_devices  # noqa: PLC0415

    open_devices(plan_devices(DevicesConfig(emulate=1), []))
    training = TrainingConfig(recompute=recompute)
    config = Config(model=ModelConfig(gpt=SIZES[size]), training=training)
    step = TrainingStep(config, DEVICE, Lengths(BATCH, TEXT, codes))
    for _ in range(STEPS):
        step()


def peak_mb(command: list[str]) -> float:
    """Of the process that the command is."""
    with tempfile.TemporaryFile() as said:
        begun = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)  # noqa: S603
        _, status, used = os.wait4(begun.pid, 0)
        begun.returncode = os.waitstatus_to_exitcode(status)  # Or it would be waited for again.
        if begun.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(command)} ended with {begun.returncode}:\n{said.read().decode()}")
    return used.ru_maxrss / 1024


def commands(options: argparse.Namespace, codes: int) -> dict[str, list[str]]:
    """What is run at each length, by the column it has in the table."""
    own = [sys.executable, __file__, "--size", options.size, "--one", str(codes)]
    found = {"ours": own, "ours, recomputed": [*own, "--recompute"]}
    if options.reference:
        asked = {"--what": "train", "--sizes": options.size, "--codes": codes, "--text": TEXT}
        asked |= {"--batch": BATCH, "--repeats": 1, "--max-seconds": 1}
        words = [str(word) for pair in asked.items() for word in pair]
        found["reference"] = [*(str(path) for path in options.reference), *words]
    return found


def show(figures: Figures) -> None:
    """A row for each length."""
    columns = list(next(iter(figures.values())))
    print("| positions | " + " | ".join(columns) + " |\n" + "| --- " * (len(columns) + 1) + "|")
    for positions, row in figures.items():
        print(f"| {positions} | " + " | ".join(f"{mb:,.0f} MB" for mb in row.values()) + " |")


def main() -> None:
    """Every length, in a process for each column."""
    asked = parser(__doc__)
    asked.add_argument("--size", default="tiny", choices=("tiny", "small"))
    asked.add_argument("--codes", type=int, nargs="+", default=[75, 150, 300, 600])
    asked.add_argument("--reference", nargs=2, type=Path, metavar=("PYTHON", "SCRIPT"))
    asked.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked.add_argument("--recompute", action="store_true", help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.one:
        steps(options.size, options.one, recompute=options.recompute)
        return
    figures = {
        str(codes + TEXT + ENDS): {n: peak_mb(c) for n, c in commands(options, codes).items()}
        for codes in options.codes
    }
    hand_out(figures, options, show)


if __name__ == "__main__":
    main()
