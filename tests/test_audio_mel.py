"""The mel front ends against the reference's numbers, in every mode they run in.

tests/golden/mel_frontends.safetensors holds the output of coqui-tts 0.28.0 (XTTS.md §3).
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray
from safetensors.numpy import load_file

from myxtts.audio import (
    CONDITIONING,
    CONDITIONING_V1,
    DVAE,
    SPEAKER,
    FrontEnd,
    codes_for_frames,
    codes_for_samples,
    conditioning_mel,
    dvae_mel,
    frames_for_samples,
    log_mel,
    mel_power,
    resample,
    speaker_features,
    speaker_mel,
    to_float,
)
from myxtts.audio.filters import filterbank
from myxtts.audio.mel import emphasise
from myxtts.devices import DevicePlan
from myxtts.pipeline import Program

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

Array = NDArray[np.float32]
GOLDEN = load_file(Path(__file__).parent / "golden/mel_frontends.safetensors")
STATS = GOLDEN["in.mel_stats"]
WITHIN = 1e-4  # Of the largest value: float32 sums in another order.

FROM_22K: dict[str, Callable[..., Any]] = {
    "dvae_mel": partial(dvae_mel, mel_stats_M=STATS),
    "dvae_mel_no_norm": partial(log_mel, front=DVAE),
    "cond_mel_v2": partial(conditioning_mel, mel_stats_M=STATS),
    "cond_mel_v1": partial(conditioning_mel, mel_stats_M=STATS, front=CONDITIONING_V1),
    "resample_24000_to_22050": partial(resample, from_hz=24000, to_hz=22050),
    "resample_22050_to_16000": partial(resample, from_hz=22050, to_hz=16000),
}
FROM_16K: dict[str, Callable[..., Any]] = {
    "speaker_preemphasis": emphasise,
    "speaker_mel": speaker_mel,
    "resample_16000_to_22050": partial(resample, from_hz=16000, to_hz=22050),
}
FRONT_ENDS = FROM_22K | FROM_16K


def error(found: Any, wanted: Array) -> float:
    """The largest difference, in units of the largest value."""
    assert tuple(found.shape) == wanted.shape
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


def reference(name: str) -> Array:
    """The golden output, its bands last as ours are."""
    wanted: Array = GOLDEN[f"out.{name}"]
    return np.swapaxes(wanted, 1, 2) if wanted.ndim == 3 else wanted


def in_dataset(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda sound: next(iter(tf.data.Dataset.from_tensors(sound).map(function)))


@pytest.mark.parametrize("mode", ["eager", "graph", "xla", "tf.data"])
@pytest.mark.parametrize("name", FRONT_ENDS)
def test_numbers_are_the_references(plan: DevicePlan, name: str, mode: str) -> None:
    function = FRONT_ENDS[name]
    modes: dict[str, Callable[..., Any]] = {
        "eager": function,
        "graph": Program(function, plan.data, name=name),
        "xla": Program(function, plan.data, jit=True, name=name),
        "tf.data": in_dataset(function),
    }
    with tf.device(plan.data):
        sound = tf.constant(GOLDEN["in.audio_22k" if name in FROM_22K else "in.audio_16k"])
    assert error(modes[mode](sound), reference(name)) < WITHIN


@pytest.mark.parametrize(
    ("name", "front"), [("dvae", DVAE), ("cond_v2", CONDITIONING), ("speaker", SPEAKER)]
)
def test_filterbanks_are_the_references(name: str, front: FrontEnd) -> None:
    wanted = GOLDEN[f"out.filterbank_{name}"]
    heard = len(filterbank(front))
    # The reference computes these in float32.
    assert error(filterbank(front), wanted[:heard]) < WITHIN
    assert np.abs(wanted[heard:]).max(initial=0) < WITHIN * wanted.max()


def noise(*shape: int) -> Array:
    return np.random.default_rng(3).normal(scale=0.1, size=shape).astype(np.float32)


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_a_batch_equals_its_clips_one_by_one(name: str) -> None:
    clips = noise(3, 9000)
    together = FRONT_ENDS[name](clips).numpy()
    apart = [FRONT_ENDS[name](clip[None]).numpy()[0] for clip in clips]
    assert error(together, np.stack(apart)) < 1e-5


# Remainders of the hop at both ends and just around half a window, and clips so short that
# the mirror folds to and fro.
LENGTHS = (1, 2, 199, 512, 513, 1024, 5119, 5120, 5121, 5376, 5600, 6000)
OF_LENGTHS: dict[str, tuple[Callable[..., Any], int]] = {
    "dvae": (partial(dvae_mel, mel_stats_M=STATS), 256),
    "conditioning": (partial(conditioning_mel, mel_stats_M=STATS), 256),
    "conditioning of v1": (
        partial(conditioning_mel, mel_stats_M=STATS, front=CONDITIONING_V1),
        1024,
    ),
    "speaker": (speaker_mel, 160),
}


@pytest.mark.parametrize("rubbish", [0.0, np.nan], ids=["zeros", "NaN"])
@pytest.mark.parametrize("name", OF_LENGTHS)
def test_padding_never_changes_a_clips_own_frames(name: str, rubbish: float) -> None:
    function, hop = OF_LENGTHS[name]
    padded = np.full((len(LENGTHS), max(LENGTHS)), rubbish, np.float32)
    clips = [noise(length) for length in LENGTHS]
    for row, clip in zip(padded, clips, strict=True):
        row[: len(clip)] = clip
    together = function(padded, lengths_B=np.array(LENGTHS)).numpy()
    for mel, clip in zip(together, clips, strict=True):
        alone = function(clip[None], lengths_B=np.array([len(clip)])).numpy()[0]
        assert error(mel[: frames_for_samples(len(clip), hop)], alone) < 1e-5


@pytest.mark.parametrize("name", OF_LENGTHS)
def test_lengths_that_fill_the_row_change_nothing(name: str) -> None:
    function, _hop = OF_LENGTHS[name]
    clips = noise(2, 6000)
    assert error(function(clips, lengths_B=np.array([6000, 6000])), function(clips).numpy()) < 1e-5


def test_lengths_count_under_xla_and_in_a_dataset_as_they_do_eagerly(plan: DevicePlan) -> None:
    function = partial(dvae_mel, mel_stats_M=STATS)
    with tf.device(plan.data):
        clips, lengths = tf.constant(noise(2, 6000)), tf.constant([6000, 5000])
    wanted = function(clips, lengths_B=lengths).numpy()
    compiled = Program(lambda c, n: function(c, lengths_B=n), plan.data, jit=True, name="mel")
    dataset = tf.data.Dataset.from_tensors((clips, lengths))
    mapped = dataset.map(lambda c, n: function(c, lengths_B=n))
    assert error(compiled(clips, lengths), wanted) < 1e-5
    assert error(next(iter(mapped)), wanted) < 1e-5


def test_frames_after_a_clips_end_are_silence() -> None:
    clips, lengths = noise(1, 6000), np.array([3000])
    first = frames_for_samples(3000)
    silence = np.log(1e-5) / STATS
    assert np.allclose(dvae_mel(clips, STATS, lengths)[0, first:], silence, rtol=1e-6)
    assert not speaker_mel(clips, lengths)[0, frames_for_samples(3000, 160) :].numpy().any()


@pytest.mark.parametrize("length", [5120, 5121, 5250])
def test_without_lengths_padding_changes_the_last_two_frames_and_no_other(length: int) -> None:
    clip = noise(1, length)
    alone = dvae_mel(clip, STATS).numpy()
    padded = dvae_mel(np.pad(clip, [(0, 0), (0, 2000)]), STATS).numpy()[:, : alone.shape[1]]
    same = np.isclose(padded, alone, rtol=1e-4).all(axis=(0, 2))
    assert same.tolist() == [True] * (alone.shape[1] - 2) + [False] * 2


def test_shapes_stay_static_in_a_dataset_and_unknown_lengths_pass() -> None:
    dataset = tf.data.Dataset.from_tensors(noise(2, 6000)).map(partial(log_mel, front=DVAE))
    ragged = tf.data.Dataset.from_generator(
        lambda: iter([noise(1, 3000), noise(1, 4000)]), output_signature=tf.TensorSpec([1, None])
    )
    sizes = [mel.shape[1] for mel in ragged.map(partial(log_mel, front=DVAE))]
    assert dataset.element_spec.shape.as_list() == [2, 24, 80]
    assert sizes == [12, 16]


def test_speaker_features_have_zero_mean_and_unit_variance_over_own_frames() -> None:
    power = np.abs(noise(2, 50, 64)) * 100
    frames = np.array([50, 20])
    features = speaker_features(power, frames).numpy()
    for row, count in zip(range(2), frames, strict=True):
        log = np.log(power[row, :count] + 1e-6)
        wanted = (log - log.mean(0)) / np.sqrt(log.var(0) + 1e-5)
        assert error(features[row, :count], wanted) < 1e-5
    assert not features[1, 20:].any()


def test_mel_power_grows_with_the_square_of_the_sound() -> None:
    clips = noise(1, 6000)
    assert error(mel_power(2 * clips, DVAE), 4 * mel_power(clips, DVAE).numpy()) < 1e-6


def test_sixteen_bits_become_floats_below_one() -> None:
    pcm = np.array([[-32768, -1, 0, 32767]], np.int16)
    wanted = [[-1.0, -(2.0**-15), 0.0, 1 - 2.0**-15]]
    assert to_float(tf.constant(pcm)).numpy().tolist() == wanted


@pytest.mark.parametrize(
    ("samples", "frames", "codes"),
    [(1, 1, 1), (255, 1, 1), (256, 2, 1), (1024, 5, 1), (1025, 5, 2), (132300, 517, 130)],
)
def test_frames_and_codes_of_samples(samples: int, frames: int, codes: int) -> None:
    assert (frames_for_samples(samples), codes_for_samples(samples)) == (frames, codes)
    assert frames_for_samples(tf.constant(samples)).numpy() == frames
    assert codes_for_samples(tf.constant([samples])).numpy().tolist() == [codes]


@pytest.mark.parametrize(("frames", "codes"), [(1, 1), (4, 1), (5, 2), (96, 24), (97, 25)])
def test_codes_of_frames_are_the_convolutions_own(frames: int, codes: int) -> None:
    assert codes_for_frames(frames) == codes
