"""How much faster than sound each stage of extraction runs, on one core.

    .venv/bin/python benchmarks/extracting.py

A batch of 16 clips of 10 s; the stages and the whole, in a graph and under XLA, one after the
other in every round. Figures are seconds of sound a second: median (least to greatest).
"""

import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from figures import spread, told, use_cores

from myxtts.audio import augment, conditioning_mel, dvae_mel, random_slices, step_key, to_float
from myxtts.batch import Tensors
from myxtts.config import AugmentConfig, DataConfig, DevicesConfig
from myxtts.devices import open_devices, plan_devices
from myxtts.features import MELS, feature_extractor
from myxtts.pipeline import Program

ROWS, SECONDS, ROUNDS = 16, 10, 9
SAMPLES = 215 * 1024
EVERYTHING = AugmentConfig(speed=1.0, band_limit=1.0, noise=1.0, gain=1.0)

Stage = Callable[[Tensors, tf.Tensor], Tensors]


def stages() -> dict[str, Stage]:
    """Every stage by itself, and all of them as training runs them."""
    stats = tf.ones([MELS])

    def wave(batch: Tensors) -> tf.Tensor:
        return to_float(batch["pcm"])

    def slices(batch: Tensors, number: tf.Tensor) -> Tensors:
        return random_slices(wave(batch), batch["samples"], step_key(0, number)).wave

    def changed(batch: Tensors, number: tf.Tensor) -> Tensors:
        return augment(wave(batch), batch["samples"], step_key(0, number), EVERYTHING)

    return {
        "int16 to float": lambda batch, _number: wave(batch),
        "all augmentation": changed,
        "slice": slices,
        "DVAE mel": lambda batch, _number: dvae_mel(wave(batch), stats, batch["samples"]),
        "slice and its mel": lambda b, n: conditioning_mel(slices(b, n), stats),
        "whole, no augmentation": feature_extractor(DataConfig(), 0),
        "whole, all augmentation": feature_extractor(DataConfig(augment=EVERYTHING), 0),
    }


def main() -> None:
    """Prints a table."""
    use_cores(1)
    plan = plan_devices(DevicesConfig(emulate=2), [])
    open_devices(plan)
    random = np.random.default_rng(0)
    with tf.device(plan.data):
        batch = {
            "pcm": tf.constant(random.integers(-8000, 8000, (ROWS, SAMPLES), np.int16)),
            "samples": tf.fill([ROWS], tf.constant(SAMPLES, tf.int64)),
            "weights": tf.ones([ROWS]),
        }
        number = tf.constant(1, tf.int64)
    programs = {
        (name, jit): Program(stage, plan.data, jit=jit, name=name)
        for name, stage in stages().items()
        for jit in (False, True)
    }
    times: dict[tuple[str, bool], list[float]] = {key: [] for key in programs}
    for program in programs.values():
        program(batch, number)
    for _ in range(ROUNDS):
        for key, program in programs.items():
            start = time.perf_counter()
            program(batch, number)
            times[key].append(ROWS * SECONDS / (time.perf_counter() - start))
    print(f"{'':26}{'graph':>24}{'XLA':>24}")
    for name in stages():
        row = "".join(told(spread(times[name, jit])).rjust(24) for jit in (False, True))
        print(f"{name:26}{row}")


if __name__ == "__main__":
    main()
