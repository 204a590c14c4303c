"""The speaker encoder against the reference's numbers, and a voice of several clips.

tests/golden/speaker_encoder.safetensors holds the output of coqui-tts 0.28.0 (XTTS.md §9).
"""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import WITHIN, distance, give_golden_weights, golden

from myxtts.audio import CODEC_HZ, SPEAKER_HZ, resample
from myxtts.config import SpeakerConfig
from myxtts.importer.names import speaker_names
from myxtts.pipeline import Program
from myxtts.speaker import REFERENCE_PEAK, Speaker, reference_sound, voice_vector
from myxtts.weights import named_weights

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

CONFIG = SpeakerConfig(width=32, filters=(8, 8, 16, 16), blocks=(1, 2, 1, 1))  # tiny_config.json.
GOLDEN = golden("speaker_encoder")
MODEL = "/CPU:1"
COMPILERS = pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])


def made(precision: str = "float32") -> Speaker:
    with tf.device(MODEL):
        speaker = Speaker(CONFIG, precision)
        give_golden_weights(
            speaker, "weights_hifigan_decoder", speaker_names(CONFIG), "speaker_encoder."
        )
    return speaker


@pytest.fixture(scope="module")
def speaker() -> Speaker:
    return made()


def on_model(array: Any) -> tf.Tensor:
    with tf.device(MODEL):
        return tf.constant(array)


def speech(name: str = "in.audio_16k") -> tf.Tensor:
    return on_model(GOLDEN[name])


def test_has_exactly_the_weights_of_the_reference_and_none_learns(speaker: Speaker) -> None:
    assert set(named_weights(speaker)) == {name.ours for name in speaker_names(CONFIG)}
    assert speaker.trainable_variables == []


@COMPILERS
def test_vectors_are_those_of_the_reference(speaker: Speaker, jit: bool) -> None:
    def vectors(wave: tf.Tensor, reference: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return speaker.unscaled(wave), speaker(wave), voice_vector(speaker, reference)

    program = Program(vectors, MODEL, jit=jit)
    unscaled, unit, voice = program(speech(), speech("in.audio_22k"))
    assert distance(unscaled, GOLDEN["out.embedding"]) < WITHIN
    assert distance(unit, GOLDEN["out.embedding_l2"]) < WITHIN
    assert distance(voice, GOLDEN["out.embedding_from_22k"][..., 0]) < WITHIN


LENGTHS = (32137, 20000, 5119, 1600)


@pytest.fixture(scope="module")
def alone(speaker: Speaker) -> np.ndarray[Any, Any]:
    waves = [GOLDEN["in.audio_16k"][:1, :length] for length in LENGTHS]
    return np.concatenate([speaker(on_model(wave)) for wave in waves])


@COMPILERS
def test_a_padded_clip_has_the_vector_it_has_alone(
    speaker: Speaker, alone: np.ndarray[Any, Any], jit: bool
) -> None:
    padded = np.full((len(LENGTHS), max(LENGTHS)), np.nan, np.float32)
    for row, length in enumerate(LENGTHS):
        padded[row, :length] = GOLDEN["in.audio_16k"][0, :length]
    vectors = Program(speaker.__call__, MODEL, jit=jit)(on_model(padded), on_model(LENGTHS))
    assert distance(vectors, alone) < 1e-5


def test_any_length_runs_in_one_trace(speaker: Speaker) -> None:
    shape = tf.TensorSpec([None, None]), tf.TensorSpec([None], tf.int32)
    graph = tf.function(speaker.__call__, autograph=False).get_concrete_function(*shape)
    with tf.device(MODEL):
        vectors = graph(speech(), on_model([32137, 32137]))
    assert distance(vectors, GOLDEN["out.embedding_l2"]) < WITHIN


def test_the_sound_gets_a_gradient_and_the_weights_none(speaker: Speaker) -> None:
    wave = speech()
    with tf.device(MODEL), tf.GradientTape() as tape:
        tape.watch(wave)
        loss = tf.reduce_sum(speaker(wave)[:, 0])
    gradient = tape.gradient(loss, wave).numpy()
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0


def test_a_voice_of_several_clips_is_the_mean_of_their_vectors(speaker: Speaker) -> None:
    wave, lengths = GOLDEN["in.audio_16k"], (20000, 15000)
    clips = [
        speaker(resample(on_model(clip[None, :length]), CODEC_HZ, SPEAKER_HZ))
        for clip, length in zip(wave, lengths, strict=True)
    ]
    voice = voice_vector(speaker, on_model(wave), on_model(lengths))
    assert distance(voice, np.mean(clips, 0)) < 1e-5
    assert np.linalg.norm(voice) < 1


def test_only_the_first_seconds_of_a_reference_are_heard() -> None:
    wave = on_model(np.ones((2, 3 * CODEC_HZ), np.float32))
    sound, lengths = reference_sound(wave, on_model([CODEC_HZ, 3 * CODEC_HZ]), seconds=2)
    assert sound.shape == (2, 2 * SPEAKER_HZ)
    assert lengths is not None
    assert lengths.numpy().tolist() == [SPEAKER_HZ, 2 * SPEAKER_HZ]


def test_a_reference_is_scaled_to_its_peak_and_silence_stays_silence() -> None:
    wave = np.sin(np.arange(4410, dtype=np.float32) / 50)
    quiet = on_model(np.stack([0.1 * wave, 0 * wave]))
    sound, _ = reference_sound(quiet, peak=REFERENCE_PEAK)
    plain, _ = reference_sound(on_model(0.75 * wave[None] / np.abs(wave).max()))
    assert distance(sound[:1], plain.numpy()) < 1e-5
    assert not sound[1].numpy().any()
