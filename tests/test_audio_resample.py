"""Resampling: tones stay tones, lengths are exact, padding stays silent."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from numpy.typing import NDArray

from myxtts.audio import resample, resampled_length

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

RATES = [(22050, 16000), (16000, 22050), (22050, 24000), (24000, 22050), (22050, 44100), (8, 5)]


def tone(hz: float, rate: int, samples: int) -> NDArray[np.float32]:
    return np.sin(2 * np.pi * hz * np.arange(samples) / rate).astype(np.float32)[None]


@pytest.mark.parametrize(("old", "new"), RATES)
def test_a_tone_stays_the_same_tone(old: int, new: int) -> None:
    heard = resample(tone(0.05 * old, old, 4000), old, new).numpy()
    wanted = tone(0.05 * old, new, heard.shape[1])
    assert np.abs(heard - wanted)[:, 100:-100].max() < 1e-2


def test_a_tone_above_the_new_limit_is_gone() -> None:
    heard = resample(tone(10000, 22050, 8000), 22050, 16000).numpy()
    assert np.abs(heard[:, 100:-100]).max() < 1e-2


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("samples", [1, 2, 440, 441, 442, 100_000_000])
def test_the_new_length_is_rounded_up_and_fits_32_bits(
    samples: int, rates: tuple[int, int]
) -> None:
    wanted = ceil(samples * Fraction(rates[1], rates[0]))
    assert resampled_length(samples, *rates) == wanted
    found = resampled_length(np.array([samples], np.int32), *rates)
    assert found.dtype == np.int32
    assert found.tolist() == [wanted]


@pytest.mark.parametrize(("old", "new"), [(22051, 22050), (7919, 16000), (22050, 16000)])
def test_rates_without_a_common_divisor_follow_the_definition(old: int, new: int) -> None:
    clip = np.random.default_rng(0).normal(size=(1, 300)).astype(np.float32)
    found = resample(clip, old, new).numpy()
    cutoff = 0.99 * min(old, new)
    distance = np.arange(300)[:, None] / old - np.arange(found.shape[1]) / new
    u = np.clip(cutoff * distance, -6, 6)
    kernel = np.sinc(u) * np.cos(np.pi * u / 12) ** 2 * cutoff / old
    assert np.abs(found - clip @ kernel).max() < 1e-5


def test_a_padded_clip_resamples_to_itself_and_then_silence() -> None:
    clips = np.random.default_rng(0).normal(size=(2, 3000)).astype(np.float32)
    together = resample(clips, 22050, 16000, np.array([3000, 1700])).numpy()
    alone = resample(clips[1:, :1700], 22050, 16000).numpy()
    length = resampled_length(1700, 22050, 16000)
    assert np.abs(together[1, :length] - alone[0]).max() < 1e-5
    assert not together[1, length:].any()


def test_the_same_rate_changes_nothing() -> None:
    clip = tone(440, 22050, 100)
    assert (np.asarray(resample(clip, 22050, 22050)) == clip).all()
