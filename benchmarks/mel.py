"""What the mel front ends cost on one core: eagerly, in a graph, under XLA, and in torch.

    .venv/bin/python benchmarks/mel.py

A batch of 16 clips of 10 s, the modes one after the other in every round, so that a
neighbour's burst hits all of them. torch computes the DVAE's mel only, and only where it is
installed: it is no dependency.
Legend: times are milliseconds for the whole batch: median (first to third quarter).
"""

import importlib
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from statistics import quantiles
from typing import Any

import numpy as np
import tensorflow as tf
from figures import Work, hand_out, parser, use_cores

from myxtts.audio import conditioning_mel, dvae_mel, log_mel, resample, speaker_mel
from myxtts.audio.filters import DVAE, filterbank, window
from myxtts.config import DevicesConfig
from myxtts.devices import open_devices, plan_devices
from myxtts.pipeline import Program

CLIPS = 16
SECONDS = 10
CODEC_HZ = 22050
SPEAKER_HZ = 16000
DEVICE = "/CPU:0"
LENGTHS = np.linspace(0.5, 1, CLIPS)

Figures = dict[str, dict[str, list[float]]]


def noise(hz: int) -> tf.Tensor:
    """A batch of noise of one rate."""
    sound = np.random.default_rng(0).normal(scale=0.1, size=(CLIPS, SECONDS * hz))
    return tf.constant(sound, tf.float32)


def front_ends() -> dict[str, tuple[Callable[..., tf.Tensor], tuple[tf.Tensor, ...]]]:
    """What is measured, and what goes in."""
    clips, speech, stats = noise(CODEC_HZ), noise(SPEAKER_HZ), tf.ones(80)
    lengths = tf.constant(LENGTHS * SECONDS * CODEC_HZ, tf.int32)
    return {
        "DVAE mel": (dvae_mel, (clips, stats)),
        "DVAE mel with lengths": (dvae_mel, (clips, stats, lengths)),
        "conditioning mel": (conditioning_mel, (clips, stats)),
        "speaker mel": (speaker_mel, (speech,)),
        "resample to 16 kHz": (
            partial(resample, from_hz=CODEC_HZ, to_hz=SPEAKER_HZ),
            (clips,),
        ),
        "tf.signal.stft mel": (stft_mel, (clips, stats)),
    }


def stft_mel(clips: tf.Tensor, stats: tf.Tensor) -> tf.Tensor:
    """The DVAE's mel with TensorFlow's own framing, to compare ours with."""
    ends = tf.pad(clips, [[0, 0], [DVAE.fft // 2, DVAE.fft // 2]], mode="REFLECT")
    spectrum = tf.signal.stft(ends, DVAE.fft, DVAE.hop, DVAE.fft)[..., : len(filterbank(DVAE))]
    power = tf.square(tf.math.real(spectrum)) + tf.square(tf.math.imag(spectrum))
    return tf.math.log(tf.maximum(power @ filterbank(DVAE), 1e-5)) / stats


def works() -> dict[str, dict[str, Work]]:
    """Every front end in every mode, compiled and warm."""
    found: dict[str, dict[str, Work]] = {}
    for name, (function, given) in front_ends().items():
        modes: dict[str, Callable[..., Any]] = {
            "eager": function,
            "graph": Program(function, DEVICE, name=name),
            "xla": Program(function, DEVICE, jit=True, name=name),
        }
        found[name] = {mode: partial(run, *given) for mode, run in modes.items()}
    if importlib.util.find_spec("torch"):
        found["DVAE mel"]["torch"] = torch_mel(noise(CODEC_HZ).numpy())
    for modes_of_one in found.values():
        for work in modes_of_one.values():
            work()
    return found


def torch_mel(sound: Any) -> Work:
    """The same mel by torch.stft, on one thread; stops where it is not the same."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    clips, hann = torch.from_numpy(sound), torch.from_numpy(window(DVAE).copy())
    bins = len(filterbank(DVAE))
    filters = torch.from_numpy(filterbank(DVAE).copy())

    def work() -> Any:
        with torch.no_grad():
            spectrum = torch.stft(clips, DVAE.fft, DVAE.hop, window=hann, return_complex=True)
            power = torch.view_as_real(spectrum[:, :bins]).square().sum(-1)
            return torch.log(torch.clamp(power.transpose(1, 2) @ filters, min=1e-5))

    if not np.allclose(work().numpy(), log_mel(sound, DVAE), atol=1e-3):
        raise AssertionError("torch computes another mel, so the comparison would be unfair")
    return work


def measure(found: dict[str, dict[str, Work]], rounds: int) -> Figures:
    """Milliseconds of each: median, first and third quarter."""
    times: dict[str, dict[str, list[float]]] = {n: {m: [] for m in w} for n, w in found.items()}
    for _ in range(rounds):
        for name, modes in found.items():
            for mode, work in modes.items():
                start = time.perf_counter()
                work()
                times[name][mode].append((time.perf_counter() - start) * 1000)
    return {
        name: {mode: _quarters(values) for mode, values in modes.items()}
        for name, modes in times.items()
    }


def _quarters(values: list[float]) -> list[float]:
    first, middle, third = quantiles(values, n=4)
    return [middle, first, third]


def show(figures: Figures) -> None:
    """One line for each front end."""
    modes = list(next(iter(figures.values())))
    print(" " * 24 + "".join(f"{mode:>22}" for mode in modes))
    for name, row in figures.items():
        cells = [f"{row[mode][0]:.1f} ({row[mode][1]:.1f}–{row[mode][2]:.1f})" for mode in row]
        print(f"{name:24}" + "".join(f"{cell:>22}" for cell in cells))
    compiled = figures["DVAE mel"]["xla"][0]
    print(f"DVAE mel under XLA: {CLIPS * SECONDS * 1000 / compiled:.0f} seconds of sound a second")
    if "torch" in modes:
        print(f"torch.stft takes {figures['DVAE mel']['torch'][0] / compiled:.1f} × as long")
    else:
        print("torch is not installed, so nothing is compared with torch.stft.")


def main() -> None:
    """Measures on one core and one thread, whatever the machine has."""
    asked = parser(__doc__)
    asked.add_argument("--rounds", type=int, default=20)
    options = asked.parse_args()
    use_cores(1)
    open_devices(plan_devices(DevicesConfig(emulate=1), []))
    hand_out(measure(works(), options.rounds), options, show)


if __name__ == "__main__":
    main()
