"""The vocoder against the reference's numbers, whole, in windows and folded (XTTS.md §8)."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import WITHIN, Array, distance, give_golden_weights, golden

from myxtts.config import VocoderConfig
from myxtts.importer.names import vocoder_names
from myxtts.pipeline import Program
from myxtts.vocoder import (
    Vocoder,
    frames_for_latents,
    latents_at_speed,
    reach,
    samples_for_latents,
)
from myxtts.vocoder.lengths import frames_of
from myxtts.weights import named_weights

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

CONFIG = VocoderConfig(width=64)  # tiny_config.json.
GOLDEN = golden("hifigan")
MODEL = "/CPU:1"


def made(precision: str = "float32") -> Vocoder:
    with tf.device(MODEL):
        vocoder = Vocoder(CONFIG, latent_width=128, speaker_width=32, precision=precision)
        give_golden_weights(
            vocoder, "weights_hifigan_decoder", vocoder_names(CONFIG), "waveform_decoder."
        )
    return vocoder


@pytest.fixture(scope="module")
def vocoder() -> Vocoder:
    return made()


@pytest.fixture(scope="module")
def folded(vocoder: Vocoder) -> Vocoder:
    with tf.device(MODEL):
        return vocoder.folded()


def on_model(array: Any) -> tf.Tensor:
    with tf.device(MODEL):
        return tf.constant(array)


def latents(items: int = 2) -> tf.Tensor:
    return on_model(GOLDEN["in.latents"][:items])


def speaker(items: int = 2) -> tf.Tensor:
    return on_model(GOLDEN["in.speaker"][:items, :, 0])


def wave(name: str) -> Array:
    return GOLDEN[f"out.wav_{name}"][:, 0]


def program(network: Vocoder, *, jit: bool) -> Program:
    return Program(network.__call__, MODEL, jit=jit, name="speak")


def test_has_exactly_the_weights_of_the_reference(vocoder: Vocoder) -> None:
    assert set(named_weights(vocoder)) == {name.ours for name in vocoder_names(CONFIG)}


def test_frames_are_those_of_the_reference() -> None:
    assert (
        distance(np.swapaxes(frames_of(latents()), 1, 2), GOLDEN["out.upsampled_batch2"]) < WITHIN
    )


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
@pytest.mark.parametrize("which", ["vocoder", "folded"])
def test_sound_is_that_of_the_reference(
    which: str, jit: bool, request: pytest.FixtureRequest
) -> None:
    speak = program(request.getfixturevalue(which), jit=jit)
    assert distance(speak(latents(), speaker()), wave("batch2")) < WITHIN


def test_one_item_sounds_alone_as_it_does_in_a_batch(vocoder: Vocoder) -> None:
    assert distance(vocoder(latents(1), speaker(1)), wave("batch1")) < WITHIN


def test_slow_speech_is_that_of_the_reference(folded: Vocoder) -> None:
    slow = latents_at_speed(latents(1), 0.8)
    assert distance(slow, GOLDEN["out.latents_speed_0p8"]) < WITHIN
    assert distance(folded(slow, speaker(1)), wave("speed_0p8")) < WITHIN


def test_no_speed_is_slower_than_a_twentieth() -> None:
    assert latents_at_speed(latents(1), 0.0).shape[1] == 20 * 13


def test_every_weight_learns(vocoder: Vocoder) -> None:
    with tf.device(MODEL), tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(vocoder(latents(), speaker())))
    gradients = tape.gradient(loss, [v.value for v in vocoder.trainable_variables])
    assert len(gradients) == len(named_weights(vocoder))
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)


def test_sound_in_bfloat16_is_close() -> None:
    mixed = made("mixed_bfloat16")
    sound = program(mixed, jit=False)(latents(), speaker())
    assert sound.dtype == tf.float32
    assert distance(sound, wave("batch2")) < 0.05
    assert all(v.dtype == "float32" for v in named_weights(mixed).values())


def test_lengths_are_the_references() -> None:
    assert [samples_for_latents(count) for count in (20, 100, 129)] == [22272, 111360, 143616]
    # As floating point gives them, which rounds 24000 / 22050.
    assert all(frames_for_latents(n) == int(4 * n * (24000 / 22050)) for n in range(5000))


def test_any_length_runs_in_one_trace(folded: Vocoder) -> None:
    shape = tf.TensorSpec([None, None, 128]), tf.TensorSpec([None, 32])
    graph = tf.function(folded.__call__, autograph=False).get_concrete_function(*shape)
    with tf.device(MODEL):
        assert distance(graph(latents(), speaker()), wave("batch2")) < WITHIN


@pytest.fixture(scope="module")
def long() -> tf.Tensor:
    random = np.random.default_rng(5).standard_normal((1, 40, 128))
    return on_model(random.astype(np.float32))


@pytest.mark.parametrize("start", [7, 16])
def test_a_window_gives_the_samples_of_the_whole(
    start: int, folded: Vocoder, long: tf.Tensor
) -> None:
    whole = folded(long, speaker(1))
    first, stop, side = start, start + 21, reach(CONFIG)
    window = folded(long[:, first:stop], speaker(1), first=on_model(first))
    begin, end = samples_for_latents(first + side), samples_for_latents(stop - side)
    inside = slice(begin - samples_for_latents(first), end - samples_for_latents(first))
    assert distance(window[:, inside], whole[:, begin:end].numpy()) < WITHIN


def test_the_last_window_ends_as_the_whole(folded: Vocoder, long: tf.Tensor) -> None:
    whole = folded(long, speaker(1))
    count = frames_for_latents(40) - frames_for_latents(19)
    window = folded(long[:, 19:], speaker(1), first=19, frames=count)
    begin = samples_for_latents(19 + reach(CONFIG))
    tail = whole[:, begin:].numpy()
    assert distance(window[:, -tail.shape[1] :], tail) < WITHIN
