"""The vocoder's losses, the pieces of clips it learns from, and a contest it gets better in."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import WITHIN, Array, distance

from myxtts.audio import VOCODER, resample, step_key, vocoder_mel
from myxtts.audio.filters import filterbank
from myxtts.config import DiscriminatorConfig, VocoderConfig
from myxtts.pipeline import Program
from myxtts.vocoder import (
    Clips,
    Discriminators,
    Opinion,
    Players,
    Vocoder,
    Windows,
    fixed_windows,
    losses,
    play,
    random_windows,
    reach,
    samples_for_latents,
)
from myxtts.vocoder.lengths import frames_of
from myxtts.weights import named_weights

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

MODEL = "/CPU:1"
WIDTH, SPEAKER, LATENTS = 8, 4, 4
CONFIG = VocoderConfig(
    width=16,
    upsample_rates=(16, 16),
    upsample_kernels=(32, 32),
    residual_kernels=(3,),
    residual_dilations=(1,),
)
JUDGES = DiscriminatorConfig(periods=(3,), period_width=2, scales=1, scale_width=4, scale_groups=2)
RANDOM = np.random.default_rng(11)


def on_model(array: Any, dtype: Any = np.float32) -> tf.Tensor:
    with tf.device(MODEL):
        return tf.constant(np.asarray(array, dtype))


def clips(lengths: list[int], room: int = 30000, weights: list[float] | None = None) -> Clips:
    """Noise, rubbish in the padding, and latents that hold their own number and their clip's."""
    wave = RANDOM.standard_normal((len(lengths), room)) * 0.1
    wave[np.arange(room) >= np.array(lengths)[:, None]] = np.nan
    number = np.broadcast_to(np.arange(-(-room // 1024)), (len(lengths), -(-room // 1024)))
    latents = np.stack([number, number * 0 + np.arange(len(lengths))[:, None]], -1)
    return Clips(
        on_model(latents),
        on_model(wave),
        on_model(lengths, np.int64),
        on_model(weights or [1.0] * len(lengths)),
    )


def whole_sound(given: Clips, row: int) -> Array:
    """A clip by itself at 24 kHz."""
    wave = given.wave_BS[row : row + 1, : int(given.samples_B[row])]
    sound: Array = resample(wave, 22050, 24000)[0].numpy()
    return sound


@pytest.mark.parametrize("step", range(3))
def test_a_piece_has_the_real_sound_from_where_its_first_latent_begins(step: int) -> None:
    given = clips([30000, 20000, 8 * 1024, 9 * 1024 - 1])
    windows = random_windows(given, 8, step_key(3, step))
    for row, first in enumerate(windows.first_B.numpy()):
        begin = samples_for_latents(int(first))
        wanted = whole_sound(given, row)[begin : begin + samples_for_latents(8)]
        assert distance(windows.wave_BN[row], wanted) < WITHIN
        assert windows.latents_BWD[row, :, 0].numpy().tolist() == list(range(first, first + 8))
        assert (windows.latents_BWD[row, :, 1].numpy() == row).all()


def test_pieces_start_anywhere_inside_their_clips_and_the_same_key_repeats_them() -> None:
    given = clips([20000] * 200, room=20480)
    first = random_windows(given, 8, step_key(0, 1)).first_B.numpy()
    assert set(first) == set(range(20000 // 1024 - 8 + 1))
    assert (first == random_windows(given, 8, step_key(0, 1)).first_B.numpy()).all()
    assert (first != random_windows(given, 8, step_key(0, 2)).first_B.numpy()).any()


def test_clips_shorter_than_a_piece_and_rows_without_a_clip_have_no_weight() -> None:
    given = clips([8192, 8191, 30000, 0], weights=[1.0, 1.0, 1.0, 0.0])
    windows = random_windows(given, 8, step_key(0, 0))
    assert windows.weights_B.numpy().tolist() == [1.0, 0.0, 1.0, 0.0]
    assert windows.first_B.numpy()[[0, 1, 3]].tolist() == [0, 0, 0]
    assert np.isfinite(windows.wave_BN).all()


def test_evaluation_takes_the_middle_of_each_clip() -> None:
    assert fixed_windows(clips([30000, 8192]), 8).first_B.numpy().tolist() == [10, 0]


def test_more_latents_than_a_batch_has_give_pieces_without_weight() -> None:
    windows = fixed_windows(clips([5000, 3000], room=5120), 8)
    assert windows.latents_BWD.shape == (2, 8, 2)
    assert windows.weights_B.numpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_compiled_pieces_are_the_eager_ones_in_a_static_shape(jit: bool) -> None:
    given, key = clips([30000, 20000]), on_model([0, 4], np.int32)
    program = Program(lambda *parts: random_windows(Clips(*parts[:4]), 8, parts[4]), MODEL, jit=jit)
    found, eager = program(*given, key), random_windows(given, 8, key)
    assert found.wave_BN.shape == (2, samples_for_latents(8))
    pairs = zip(found, eager, strict=True)
    assert all(distance(ours, theirs.numpy()) < WITHIN for ours, theirs in pairs)


def test_a_frame_hears_the_latents_of_its_own_moment() -> None:
    # Latents that hold their own number are a clock; so a frame's number tells its time.
    firsts = [0, 5, 6, 150]
    ticks = on_model(np.arange(8)[None, :, None] + np.array(firsts)[:, None, None])
    frames = frames_of(ticks, on_model(firsts, np.int64)).numpy()[:, 5:-5, 0]
    for first, heard in zip(firsts, frames, strict=True):
        place = samples_for_latents(first) // 256 + 5 + np.arange(len(heard)) + 0.5
        assert heard + 0.5 == pytest.approx(place * 256 / 24000 * 22050 / 1024, abs=1e-4)


@pytest.fixture(scope="module")
def vocoder() -> Vocoder:
    with tf.device(MODEL):
        keras.utils.set_random_seed(1)
        network = Vocoder(CONFIG, latent_width=WIDTH, speaker_width=SPEAKER)
        for name, weight in named_weights(network).items():
            if name.endswith("magnitude"):  # One so narrow starts too softly to learn soon.
                weight.assign(8 * weight)
    return network


def test_rows_with_pieces_from_different_places_sound_as_their_wholes(vocoder: Vocoder) -> None:
    long = on_model(RANDOM.standard_normal((3, 30, WIDTH)))
    speaker = on_model(RANDOM.standard_normal((3, SPEAKER)))
    whole, side, firsts = vocoder(long, speaker).numpy(), reach(CONFIG), [0, 7, 13]
    pieces = tf.stack([long[row, first : first + 15] for row, first in enumerate(firsts)])
    made = vocoder(pieces, speaker, first=on_model(firsts, np.int64)).numpy()
    for row, first in enumerate(firsts):
        begin, end = samples_for_latents(first + side), samples_for_latents(first + 15 - side)
        place = samples_for_latents(first)
        inside = made[row, begin - place : end - place]
        assert distance(inside, whole[row, begin:end]) < WITHIN


def opinions(score: list[list[float]], feature: list[list[float]]) -> list[Opinion]:
    """Two alike discriminators of one layer."""
    given = [on_model(values)[:, None, :, None] for values in (score, feature)]
    return [Opinion(given[0], (given[1],)), Opinion(given[0], (given[1],))]


def test_losses_are_those_of_the_paper() -> None:
    ones = on_model([1.0, 1.0])
    real = opinions([[1.0, 0.5], [0.0, 1.0]], [[1.0, 3.0], [0.0, 0.0]])
    made = opinions([[0.0, 2.0], [1.0, 1.0]], [[0.0, 1.0], [4.0, 0.0]])
    assert float(losses.real_loss(real, ones)) == pytest.approx(2 * (0.25 + 1) / 4)
    assert float(losses.made_loss(made, ones)) == pytest.approx(2 * (4 + 1 + 1) / 4)
    assert float(losses.adversarial_loss(made, ones)) == pytest.approx(2 * (1 + 1) / 4)
    assert float(losses.feature_loss(real, made, ones)) == pytest.approx(2 * (1 + 2 + 4) / 4)


def test_rows_of_no_weight_count_for_nothing_whatever_they_hold() -> None:
    values = on_model([1.0, np.nan, 4.0])
    assert float(losses.weighted_mean(values, on_model([1.0, 0.0, 1.0]))) == 2.5
    assert float(losses.weighted_mean(values, on_model([2.0, 0.0, 1.0]))) == 2.0
    assert float(losses.weighted_mean(values, on_model([0.0, 0.0, 0.0]))) == 0.0


def test_mel_loss_is_the_logarithm_of_how_much_louder_a_sound_is() -> None:
    wave = on_model(RANDOM.standard_normal((2, 8192)) * 0.1)
    ones = on_model([1.0, 1.0])
    assert float(losses.mel_loss(wave, wave, ones)) == 0
    assert float(losses.mel_loss(2 * wave, wave, ones)) == pytest.approx(np.log(2), rel=1e-4)
    assert float(losses.mel_loss(0 * wave, wave, ones)) < 12  # Silence is no infinity.


def test_every_band_of_the_mel_hears_something_up_to_twelve_thousand_hertz() -> None:
    assert filterbank(VOCODER).shape[1] == 80
    assert filterbank(VOCODER).max(0).min() > 0
    assert vocoder_mel(on_model(np.zeros((1, 8192)))).shape == (1, 33, 80)


def hear(wave_BS: tf.Tensor) -> tf.Tensor:
    """A voice is told from others by its loudness in four moments."""
    batch = wave_BS.shape[0]
    return tf.reduce_mean(tf.square(tf.reshape(wave_BS[:, :2000], [batch, 4, 500])), 2)


def test_speaker_loss_is_one_less_the_cosine_and_hears_sixteen_thousand_hertz() -> None:
    lengths = []

    def halves(wave_BS: tf.Tensor) -> tf.Tensor:
        lengths.append(wave_BS.shape[1])
        middle = wave_BS.shape[1] // 2
        return tf.stack([wave_BS[:, middle // 2], wave_BS[:, middle * 3 // 2]], 1)

    real = on_model(np.ones((2, 2400)))
    made = on_model(np.where(np.arange(2400) < 1200, 1, [[1], [-1]]))
    found = [losses.speaker_loss(halves, made, real, on_model(w)) for w in ([1, 0], [0, 1])]
    assert [float(each) for each in found] == pytest.approx([0, 1], abs=0.01)
    assert set(lengths) == {1600}


@pytest.fixture(scope="module")
def players(vocoder: Vocoder) -> Players:
    with tf.device(MODEL):
        return Players(vocoder, Discriminators(JUDGES), hear)


@pytest.fixture(scope="module")
def batch() -> tuple[Windows, tf.Tensor]:
    """Three pieces and a row without a clip, and their speakers."""
    count = samples_for_latents(LATENTS)
    tones = np.sin(np.outer([0.05, 0.1, 0.2, 0.0], np.arange(count))) * 0.3
    windows = Windows(
        on_model(RANDOM.standard_normal((4, LATENTS, WIDTH))),
        on_model(tones + RANDOM.standard_normal((4, count)) * 0.01),
        on_model([0, 5, 9, 0], np.int64),
        on_model([1.0, 1.0, 1.0, 0.0]),
    )
    return windows, on_model(RANDOM.standard_normal((4, SPEAKER)))


Gradients = dict[str, Array]


def gradients(players: Players, windows: Windows, speaker: tf.Tensor) -> dict[str, Gradients]:
    with tf.device(MODEL), tf.GradientTape(persistent=True) as tape:
        told = play(players, windows, speaker)
    return {
        "vocoder": by_name(tape, told.vocoder, players.vocoder),
        "discriminators": by_name(tape, told.discriminators, players.discriminators),
    }


def by_name(tape: tf.GradientTape, loss: tf.Tensor, network: keras.Model) -> Gradients:
    weights = named_weights(network)
    found = tape.gradient(loss, [weight.value for weight in weights.values()])
    return {name: gradient.numpy() for name, gradient in zip(weights, found, strict=True)}


def furthest(ours: Gradients, theirs: Gradients) -> float:
    assert ours.keys() == theirs.keys()
    assert all(np.abs(gradient).max() > 0 for gradient in ours.values())
    return max(distance(ours[name], theirs[name]) for name in ours)


def test_discriminators_gradients_are_those_with_the_made_sound_held_fixed(
    players: Players, batch: tuple[Windows, tf.Tensor]
) -> None:
    windows, ones = batch[0], batch[0].weights_B
    with tf.device(MODEL):
        fixed_BN = tf.stop_gradient(play(players, *batch).made_BN)
        with tf.GradientTape() as tape:
            real = losses.real_loss(players.discriminators(windows.wave_BN), ones)
            loss = real + losses.made_loss(players.discriminators(fixed_BN), ones)
        wanted = by_name(tape, loss, players.discriminators)
    assert furthest(gradients(players, *batch)["discriminators"], wanted) < 1e-3


def test_a_row_without_a_clip_changes_neither_losses_nor_gradients(
    players: Players, batch: tuple[Windows, tf.Tensor]
) -> None:
    windows, speaker = batch
    three = Windows(*(part[:3] for part in windows))
    with tf.device(MODEL):
        loud = windows._replace(wave_BN=windows.wave_BN + (1 - windows.weights_B)[:, None] * 1e4)
        told, alone = play(players, loud, speaker), play(players, three, speaker[:3])
    for name, scalar in alone.scalars.items():
        assert told.scalars[name].numpy() == pytest.approx(scalar.numpy(), rel=1e-4), name
    found, wanted = gradients(players, loud, speaker), gradients(players, three, speaker[:3])
    assert all(furthest(found[name], wanted[name]) < 1e-3 for name in wanted)


def test_the_vocoders_loss_is_the_weighted_sum(
    players: Players, batch: tuple[Windows, tf.Tensor]
) -> None:
    told = play(players, *batch)
    parts = {name: float(value) for name, value in told.scalars.items()}
    whole = parts["loss_adversarial"] + 2 * parts["loss_features"] + 45 * parts["loss_mel"]
    assert float(told.vocoder) == pytest.approx(whole + 9 * parts["loss_speaker"], rel=1e-5)
    assert float(told.discriminators) == pytest.approx(parts["loss_real"] + parts["loss_made"])
    assert all(value.dtype == tf.float32 for value in told.scalars.values())


def test_without_a_speaker_encoder_its_loss_is_left_out(
    players: Players, batch: tuple[Windows, tf.Tensor]
) -> None:
    scalars = play(players._replace(hear=None), *batch).scalars
    assert set(scalars) == {f"loss_{n}" for n in ("real", "made", "adversarial", "features", "mel")}


def test_updates_of_both_players_from_one_pass_bring_the_sound_nearer(
    players: Players, batch: tuple[Windows, tf.Tensor]
) -> None:
    networks = {"vocoder": players.vocoder, "discriminators": players.discriminators}
    with tf.device(MODEL):
        optimizers = {n: keras.optimizers.AdamW(2e-4, beta_1=0.8, beta_2=0.99) for n in networks}
        for name, network in networks.items():
            optimizers[name].build(network.trainable_variables)

    def step(*parts: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            told = play(players, Windows(*parts[:4]), parts[4])
        for name, network in networks.items():
            weights = network.trainable_variables
            found = tape.gradient(getattr(told, name), [weight.value for weight in weights])
            optimizers[name].apply(found, weights)
        return told.scalars

    program = Program(step, MODEL)
    course = [program(*batch[0], batch[1]) for _ in range(20)]
    assert program.traces == 1
    assert float(course[-1]["loss_mel"]) < 0.9 * float(course[0]["loss_mel"])
    assert float(course[-1]["loss_real"]) < 0.9 * float(course[0]["loss_real"])
    assert all(np.isfinite(value) for told in course for value in told.values())
