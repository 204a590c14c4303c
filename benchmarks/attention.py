"""What a training step takes of memory and of the CPU as the row grows, by form of the attention.

    .venv/bin/python benchmarks/attention.py

Four blocks of the GPT (256 wide, 4 heads), one row, dropout as in training; forward and backward.
Each figure in a process of its own: the greatest resident size after the steps less the one after
a step of 64 positions, so that TensorFlow itself and the compiler's code are in neither. Times are
of the CPU, all cores together, because neighbours lengthen those least.
Legend: B batch, S positions, D width.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from statistics import median
from typing import Any, Literal

WAYS: dict[str, tuple[Literal["plain", "blocks"], bool]] = {
    "plain": ("plain", False),
    "blocks": ("blocks", False),
    "blocks, recomputed": ("blocks", True),
}
"""Attention's form, and whether each block of the network is computed again."""
WIDTH, HEADS, BLOCKS = 256, 4, 4
SHORT = 64
STEPS = 3


def measure(length: int, way: str, *, jit: bool) -> dict[str, float]:
    """MB above the short step's, and the median of the steps' CPU seconds."""
    import tensorflow as tf  # noqa: PLC0415  The parent has no use for TensorFlow.

    from myxtts.config import DevicesConfig  # noqa: PLC0415
    from myxtts.devices import open_devices, plan_devices  # noqa: PLC0415
    from myxtts.gpt.block import Block  # noqa: PLC0415
    from myxtts.layers import Dropout  # noqa: PLC0415
    from myxtts.pipeline import Program, finish  # noqa: PLC0415

    plan = plan_devices(DevicesConfig(emulate=1), [])
    open_devices(plan)
    form, recompute = WAYS[way]
    with tf.device(plan.model):
        blocks = [
            Block(WIDTH, HEADS, BLOCKS, f"block_{n}", recompute=recompute, form=form)
            for n in range(BLOCKS)
        ]
        for block in blocks:
            block.build()
        key = tf.constant([1, 2])
    weights = [weight.value for block in blocks for weight in block.trainable_weights]

    def step(x_BSD: Any, key: Any) -> Any:
        with tf.GradientTape() as tape:
            for number, block in enumerate(blocks):
                x_BSD = block(x_BSD, dropout=Dropout(0.1, key).child(number))
            loss = tf.reduce_sum(tf.square(x_BSD))
        return tape.gradient(loss, weights)

    program = Program(step, plan.model, jit=jit)
    seconds, peaks = [], []
    for positions, steps in ((SHORT, 1), (length, STEPS)):
        with tf.device(plan.model):
            x_BSD = tf.random.normal([1, positions, WIDTH])
        for _ in range(steps):
            start = time.process_time()
            finish(program(x_BSD, key))
            seconds.append(time.process_time() - start)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return {"mb": peaks[1] - peaks[0], "seconds": median(seconds[2:])}


def measured_apart(length: int, way: str, *, jit: bool) -> dict[str, float]:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--one", str(length), way, *(["--jit"] if jit else [])]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  Ourselves.
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def show(figures: dict[str, dict[str, dict[str, float]]]) -> None:
    """A row for each length, a column for each way."""
    print("| positions | " + " | ".join(WAYS) + " |\n" + "| --- " * (len(WAYS) + 1) + "|")
    for length, row in figures.items():
        cells = [f"{row[w]['mb']:,.0f} MB, {row[w]['seconds'] * 1000:,.0f} ms" for w in WAYS]
        print(f"| {length} | " + " | ".join(cells) + " |")


def main() -> None:
    """Every length in every way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512, 1024, 2048, 4096])
    parser.add_argument("--jit", action="store_true", help="compile with XLA")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("LENGTH", "WAY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        length, way = options.one
        print(json.dumps(measure(int(length), way, jit=options.jit)))
        return
    figures = {
        str(length): {way: measured_apart(length, way, jit=options.jit) for way in WAYS}
        for length in options.lengths
    }
    if options.json:
        machine = {"python": platform.python_version(), "cores": os.cpu_count()}
        print(json.dumps({"machine": machine | vars(options), "figures": figures}, indent=2))
    else:
        show(figures)


if __name__ == "__main__":
    main()
