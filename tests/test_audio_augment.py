"""Random changes: the same key gives the same bits, and each change does what its name says."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray
from pydantic import ValidationError

from myxtts.audio import augment, resample, step_key
from myxtts.audio.augment import random_band_limit, random_gain, random_noise, random_speed
from myxtts.audio.effects import FASTEST, change_gain, change_speed, limit_band
from myxtts.audio.keys import Draw, normal, uniform
from myxtts.config import AugmentConfig
from myxtts.devices import DevicePlan
from myxtts.pipeline import Program

Array = NDArray[np.float32]
pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

KEY = np.array([11, 1200], np.int32)
ALL = AugmentConfig(speed=1, band_limit=1, noise=1, gain=1)
EFFECTS: dict[str, Callable[..., Any]] = {
    "speed": random_speed,
    "band limit": random_band_limit,
    "noise": random_noise,
    "gain": random_gain,
}
ROOM = 30000
LENGTHS = np.array([30000, 25000, 12345, 11025, 2, 0], np.int32)


def clips() -> Array:
    """Noise of each length, and zeros after it."""
    sound = np.random.default_rng(5).normal(scale=0.1, size=(len(LENGTHS), ROOM))
    return np.where(np.arange(ROOM) < LENGTHS[:, None], sound, 0).astype(np.float32)


def tone(hz: float, samples: int = ROOM) -> Array:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(samples) / 22050)).astype(np.float32)


def power_db(sound: Array) -> float:
    return float(10 * np.log10(np.mean(np.square(sound)) + 1e-20))


def test_nothing_is_changed_until_a_share_is_given() -> None:
    sound = tf.constant(clips())
    wave, lengths = augment(sound, LENGTHS, KEY, AugmentConfig())
    assert wave is sound
    assert lengths is LENGTHS


def test_the_same_key_gives_the_same_bits_whatever_ran_before() -> None:
    first = augment(clips(), LENGTHS, KEY, ALL)
    augment(clips(), LENGTHS, step_key(11, 1201), ALL)
    tf.random.normal([3])
    again = augment(clips(), LENGTHS, step_key(11, 1200), ALL)
    assert all((a.numpy() == b.numpy()).all() for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("other", [(11, 1201), (12, 1200), (1200, 11)])
@pytest.mark.parametrize("effect", EFFECTS)
def test_another_key_gives_other_sound(effect: str, other: tuple[int, int]) -> None:
    function = EFFECTS[effect]
    sounds = [function(clips(), LENGTHS, key, ALL)[0].numpy()[1] for key in (KEY, step_key(*other))]
    assert (sounds[0] != sounds[1]).any()


@pytest.mark.parametrize("effect", EFFECTS)
def test_rows_are_changed_differently(effect: str) -> None:
    twice = np.repeat(clips()[1:2], 2, axis=0)
    wave, _lengths = EFFECTS[effect](twice, LENGTHS[[1, 1]], KEY, ALL)
    assert (wave[0] != wave[1]).numpy().any()


@pytest.mark.parametrize("effect", EFFECTS)
def test_padding_stays_zero_and_nothing_is_ever_nan(effect: str) -> None:
    wave, lengths = EFFECTS[effect](clips(), LENGTHS, KEY, ALL)
    outside = np.arange(ROOM) >= np.asarray(lengths)[:, None]
    assert not wave.numpy()[outside].any()
    assert np.isfinite(wave).all()


@pytest.mark.parametrize("sound", [0.0, 1.0, -1.0, 1e-30])
def test_silence_and_full_scale_pass_every_change(sound: float) -> None:
    flat = np.where(np.arange(ROOM) < LENGTHS[:, None], np.float32(sound), np.float32(0))
    wave, _lengths = augment(flat, LENGTHS, KEY, ALL)
    assert np.isfinite(wave).all()
    assert wave.numpy().any() == (sound != 0)


@pytest.mark.parametrize("effect", ["speed", "band_limit", "noise", "gain"])
def test_a_share_of_the_rows_is_changed_and_the_others_keep_their_bits(effect: str) -> None:
    rows = np.repeat(clips()[1:2, :2000], 200, axis=0)
    config = AugmentConfig(**{effect: 0.3})
    wave, _lengths = augment(rows, np.full(200, 1500, np.int32), KEY, config)
    changed = (wave.numpy()[:, :1500] != rows[:, :1500]).any(axis=1)
    assert 0.2 < changed.mean() < 0.4


@pytest.mark.parametrize("snr_db", [-10.0, 0.0, 15.0, 40.0])
def test_noise_has_the_power_that_was_asked_for(snr_db: float) -> None:
    config = AugmentConfig(noise=1, noise_from_db=snr_db, noise_to_db=snr_db)
    clean = clips()
    noisy, _lengths = random_noise(clean, LENGTHS, KEY, config)
    for row, length in enumerate(LENGTHS[:4]):
        added = (noisy.numpy() - clean)[row, :length]
        found = power_db(clean[row, :length]) - power_db(added)
        assert found == pytest.approx(snr_db, abs=0.5)


def test_noise_is_white_and_normal() -> None:
    noise = normal(KEY, Draw.NOISE, 4, 50001).numpy()
    assert noise.shape == (4, 50001)
    assert np.abs([noise.mean(), noise.var() - 1, (noise**3).mean()]).max() < 0.03
    assert (noise**4).mean() == pytest.approx(3, rel=0.03)
    assert abs(np.corrcoef(noise[0, 1:], noise[0, :-1])[0, 1]) < 0.03


def test_band_limit_keeps_what_is_below_and_removes_what_is_above() -> None:
    limits = tf.constant([3000.0, 3000.0, 8000.0, 8000.0])
    tones = np.stack([tone(2800), tone(3300), tone(7800), tone(8300)])
    heard = limit_band(tones, np.full(4, ROOM), limits, 22050).numpy()[:, 500:-500]
    changes = [power_db(new) - power_db(tone(1000)) for new in heard]
    assert [abs(change) < 0.1 for change in changes] == [True, False, True, False]
    assert max(changes[1], changes[3]) < -40


def test_band_limit_delays_nothing() -> None:
    low = tone(300)[None]
    heard = limit_band(low, np.array([ROOM]), tf.constant([4000.0]), 22050).numpy()
    assert np.abs(heard - low)[:, 200:-200].max() < 1e-3


@pytest.mark.parametrize("speed", [0.8, 0.93, 1.0, 1.07, 1.25])
def test_speed_changes_duration_and_pitch_and_cuts_nothing(speed: float) -> None:
    sound = np.where(np.arange(ROOM) < 20000, tone(500), 0).astype(np.float32)[None]
    wave, lengths = change_speed(sound, np.array([20000]), tf.constant([speed]))
    assert int(lengths[0]) == int(np.ceil(20000 / np.float64(np.float32(speed))))
    end = min(int(lengths[0]), ROOM)
    wanted = tone(500 * speed)[:end]
    assert np.abs(wave.numpy()[0, 100 : end - 100] - wanted[100:-100]).max() < 2e-3


@pytest.mark.parametrize("ratio", [(5, 4), (7, 8), (9, 8)])
def test_speed_is_the_resampler_at_any_ratio(ratio: tuple[int, int]) -> None:
    # Ratios that float32 holds exactly, or the two would drift apart by parts of a sample.
    sound = clips()[:1, :20000]
    room, speed = np.pad(sound, [(0, 0), (0, 5000)]), tf.constant([ratio[0] / ratio[1]])
    wave, lengths = change_speed(room, np.array([20000]), speed)
    wanted = resample(sound, *ratio)
    assert int(lengths[0]) == wanted.shape[1]
    assert np.abs(wave[:, : wanted.shape[1]] - wanted).max() < 1e-5


def test_speed_is_exact_late_in_a_long_clip() -> None:
    samples = 255000
    wave, _lengths = change_speed(
        tone(4000, samples)[None], np.array([samples]), tf.constant([1.0625])
    )
    wanted = tone(4000 * 1.0625, 240000)
    assert np.abs(wave.numpy()[0, 239000:239900] - wanted[239000:239900]).max() < 5e-3


def test_no_clip_outgrows_its_row() -> None:
    config = AugmentConfig(speed=1, speed_from=0.8, speed_to=1.25)
    lengths = np.tile(np.array([30000, 29000, 15000], np.int32), 20)
    _wave, new = random_speed(np.zeros((60, ROOM), np.float32), lengths, KEY, config)
    assert new.numpy().max() <= ROOM
    assert (new.numpy()[::3] < 30000).mean() > 0.9
    assert new.numpy()[2::3].min() < 13000
    assert new.numpy()[2::3].max() > 17000


def test_gain_is_what_was_asked_for_and_stops_at_full_scale() -> None:
    sound = np.stack([tone(500)] * 3)
    heard = change_gain(sound, tf.constant([-6.0, 3.0, 20.0])).numpy()
    changes = [power_db(new) - power_db(old) for new, old in zip(heard, sound, strict=True)]
    assert changes == pytest.approx([-6.0, 3.0, 6.02], abs=0.01)
    assert np.abs(heard).max() <= 1.0


@pytest.mark.parametrize("effect", EFFECTS)
def test_compiled_changes_are_the_eager_ones(plan: DevicePlan, effect: str) -> None:
    function = partial(EFFECTS[effect], config=ALL)
    with tf.device(plan.data):
        given = tf.constant(clips()), tf.constant(LENGTHS), step_key(11, 1200)
    wanted, new = function(*given)
    for jit in (False, True):
        wave, lengths = Program(function, plan.data, jit=jit, name=effect)(*given)
        assert (lengths.numpy() == new.numpy()).all()
        assert np.abs(wave - wanted).max() < 1e-4 * np.abs(wanted).max()


def test_changes_run_inside_a_dataset_with_static_shapes() -> None:
    dataset = tf.data.Dataset.from_tensors((clips(), LENGTHS, KEY))
    mapped = dataset.map(lambda wave, lengths, key: augment(wave, lengths, key, ALL))
    wave, _lengths = next(iter(mapped))
    assert mapped.element_spec[0].shape == [len(LENGTHS), ROOM]
    assert np.abs(wave - augment(clips(), LENGTHS, KEY, ALL)[0]).max() < 1e-4


def test_draws_are_even_and_unlike_one_another() -> None:
    shares = np.stack([uniform(KEY, draw, [4000]).numpy() for draw in Draw])
    assert shares.min() >= 0
    assert shares.max() < 1
    assert np.abs(np.quantile(shares, [0.25, 0.5, 0.75], axis=1).T - [0.25, 0.5, 0.75]).max() < 0.04
    assert np.abs(np.corrcoef(shares) - np.eye(len(Draw))).max() < 0.06


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise": 1.5},
        {"speed_to": 2.0},
        {"noise_from_db": 30.0, "noise_to_db": 20.0},
        {"band_limit_from_hz": 9000.0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        AugmentConfig(**wrong)


def test_the_fastest_speed_that_settings_allow_is_the_filters() -> None:
    assert AugmentConfig(speed_to=FASTEST).speed_to == FASTEST
    with pytest.raises(ValidationError):
        AugmentConfig(speed_to=FASTEST + 0.001)
