"""Four changes to sound, each a pure function of the clips and one number for each row.

A row whose number changes nothing (speed 1, 0 dB) may still differ in its last bit; who
wants it untouched keeps the old row. Padding is zero before and after.
Legend: B batch, S samples, N blocks, W samples of a block, K taps of a filter, F bins.
"""

import math

import tensorflow as tf

from myxtts.audio.frames import frame
from myxtts.audio.waves import mute_padding, size_of

ZERO_CROSSINGS = 6
ROLLOFF = 0.99
FASTEST = 1.25
"""The fastest speed that the interpolating filter's taps are enough for."""
SPEED_TAPS = math.ceil(ZERO_CROSSINGS / ROLLOFF * FASTEST)
"""Samples heard on either side of a point between two samples."""
BAND_TAPS = 257
BAND_BLOCK = 1024
BAND_HOP = BAND_BLOCK - BAND_TAPS + 1


def change_gain(wave_BS: tf.Tensor, gain_B: tf.Tensor) -> tf.Tensor:
    """Louder or softer by so many dB, but not louder than full scale."""
    peak_B1 = tf.reduce_max(tf.abs(wave_BS), 1, keepdims=True)
    factor_B1 = _from_db(gain_B)[:, None]
    # A clip that was beyond full scale already is left there, not made softer unasked.
    room_B1 = tf.maximum(1 / tf.maximum(peak_B1, 1e-9), 1.0)
    return wave_BS * tf.minimum(factor_B1, room_B1)


def add_noise(
    wave_BS: tf.Tensor, lengths_B: tf.Tensor, snr_B: tf.Tensor, noise_BS: tf.Tensor
) -> tf.Tensor:
    """Adds unit noise, made so soft that the clip's power is so many dB above it."""
    samples_B = tf.cast(tf.maximum(lengths_B, 1), tf.float32)
    power_B = tf.reduce_sum(tf.square(wave_BS), 1) / samples_B
    level_B1 = (tf.sqrt(power_B) * _from_db(-snr_B))[:, None]
    return wave_BS + mute_padding(level_B1 * noise_BS, lengths_B)


def limit_band(
    wave_BS: tf.Tensor, lengths_B: tf.Tensor, limit_hz_B: tf.Tensor, hz: int
) -> tf.Tensor:
    """Removes what lies above a frequency; the filter has no delay and halves what lies there."""
    # Blocks that overlap by the filter's length, because a transform of the whole row
    # would be slower and would wrap the end around to the start.
    samples, half = size_of(wave_BS, 1), BAND_TAPS // 2
    blocks = (samples - 1) // BAND_HOP + 1
    after = (blocks - 1) * BAND_HOP + BAND_BLOCK - half - samples
    padded_BS = tf.pad(wave_BS, [[0, 0], [half, after]])
    spectrum_BNF = tf.signal.rfft(frame(padded_BS, BAND_BLOCK, BAND_HOP))
    filters_BF = tf.signal.rfft(_low_pass(limit_hz_B / hz), [BAND_BLOCK])
    whole_BNW = tf.signal.irfft(spectrum_BNF * filters_BF[:, None])
    valid_BNW = whole_BNW[..., BAND_TAPS - 1 :]
    limited_BS = tf.reshape(valid_BNW, [size_of(wave_BS, 0), blocks * BAND_HOP])[:, :samples]
    return mute_padding(limited_BS, lengths_B)


def change_speed(
    wave_BS: tf.Tensor, lengths_B: tf.Tensor, speed_B: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Plays each clip so many times faster, by windowed sinc; gives the new lengths as well.

    The row keeps its size: a speed at which the clip would outgrow it is an error of the
    caller's (`slowest_speed` tells) and loses the clip's end.
    """
    samples = size_of(wave_BS, 1)
    speed_B1 = tf.cast(speed_B, tf.float64)[:, None]
    # Ten seconds in float32 leave a place only five bits behind the point.
    places_BS = tf.range(samples, dtype=tf.float64) * speed_B1
    whole_BS = tf.floor(places_BS)
    between_BS = tf.cast(places_BS - whole_BS, tf.float32)
    cutoff_B1 = tf.cast(ROLLOFF * tf.minimum(1 / speed_B1, 1), tf.float32)
    first_BS = tf.cast(tf.minimum(whole_BS, tf.cast(samples, tf.float64)), tf.int32)
    padded_BS = tf.pad(wave_BS, [[0, 0], [SPEED_TAPS, SPEED_TAPS + 1]])
    played_BS = _interpolate(padded_BS, first_BS, between_BS, cutoff_B1)
    new_B = tf.math.ceil(tf.cast(lengths_B, tf.float64) / speed_B1[:, 0])
    new_B = tf.minimum(tf.cast(new_B, lengths_B.dtype), tf.cast(samples, lengths_B.dtype))
    return mute_padding(played_BS, new_B), new_B


def slowest_speed(lengths_B: tf.Tensor, samples: int | tf.Tensor) -> tf.Tensor:
    """The speed at which each clip just fills its row."""
    return tf.cast(lengths_B, tf.float32) / tf.cast(samples, tf.float32)


def _interpolate(
    padded_BS: tf.Tensor, first_BS: tf.Tensor, between_BS: tf.Tensor, cutoff_B1: tf.Tensor
) -> tf.Tensor:
    """Sound at `between_BS` after sample `first_BS`; the row has SPEED_TAPS zeros in front."""
    # A tap's sine and cosine follow from those of the whole place by adding angles: three
    # of each for a sample instead of sixteen.
    angle_BS, turn_B1 = math.pi * cutoff_B1 * between_BS, math.pi * cutoff_B1
    sine_BS, cosine_BS = tf.sin(angle_BS), tf.cos(angle_BS)
    slow_sine_BS, slow_cosine_BS = tf.sin(angle_BS / 6), tf.cos(angle_BS / 6)
    total_BS = tf.zeros_like(between_BS)
    for tap in range(1 - SPEED_TAPS, SPEED_TAPS + 1):
        crossings_BS = cutoff_B1 * (between_BS - tap)
        turned_B1, slow_B1 = turn_B1 * tap, turn_B1 * tap / 6
        waves_BS = sine_BS * tf.cos(turned_B1) - cosine_BS * tf.sin(turned_B1)
        hann_BS = 0.5 + 0.5 * (slow_cosine_BS * tf.cos(slow_B1) + slow_sine_BS * tf.sin(slow_B1))
        weight_BS = tf.where(
            tf.abs(crossings_BS) < ZERO_CROSSINGS, _sinc(crossings_BS, waves_BS) * hann_BS, 0.0
        )
        heard_BS = tf.gather(padded_BS, first_BS + (SPEED_TAPS + tap), batch_dims=1)
        total_BS += weight_BS * heard_BS
    return cutoff_B1 * total_BS


def _sinc(crossings: tf.Tensor, sine: tf.Tensor) -> tf.Tensor:
    """sin(pi x) / (pi x), given the sine; near 0 by its series, where the sine lost its digits."""
    angle = math.pi * crossings
    near = tf.abs(crossings) < 0.01
    return tf.where(near, 1 - tf.square(angle) / 6, sine / tf.where(near, 1.0, angle))


def _low_pass(share_B: tf.Tensor) -> tf.Tensor:
    """Filters (B, K) that end at a share of the sampling rate: windowed sinc, unit sum."""
    taps_K = tf.range(BAND_TAPS, dtype=tf.float32) - BAND_TAPS // 2
    hann_K = tf.square(tf.cos(math.pi * taps_K / (BAND_TAPS + 1)))
    crossings_BK = 2 * share_B[:, None] * taps_K
    filters_BK = _sinc(crossings_BK, tf.sin(math.pi * crossings_BK)) * hann_K
    return filters_BK / tf.reduce_sum(filters_BK, 1, keepdims=True)


def _from_db(level: tf.Tensor) -> tf.Tensor:
    return tf.exp(level * (math.log(10) / 20))
