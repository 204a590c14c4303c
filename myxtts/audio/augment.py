"""Random changes to the clips of a step: off by default, the same bits whenever it is repeated.

Every draw follows from the key of the seed and the global step, and from the row.
Legend: B batch, S samples.
"""

import tensorflow as tf

from myxtts.audio.effects import add_noise, change_gain, change_speed, limit_band, slowest_speed
from myxtts.audio.keys import Draw, normal, uniform
from myxtts.audio.lengths import CODEC_HZ
from myxtts.audio.waves import mute_padding, size_of
from myxtts.config.augment import AugmentConfig

Sound = tuple[tf.Tensor, tf.Tensor]
"""Clips (B, S) and their lengths (B,)."""


def augment(
    wave_BS: tf.Tensor, lengths_B: tf.Tensor, key: tf.Tensor, config: AugmentConfig
) -> Sound:
    """The clips as this step hears them; rows that no share falls on keep their bits."""
    sound = wave_BS, lengths_B
    if config.speed:
        sound = random_speed(*sound, key, config)
    if config.band_limit:
        sound = random_band_limit(*sound, key, config)
    if config.noise:
        sound = random_noise(*sound, key, config)
    if config.gain:
        sound = random_gain(*sound, key, config)
    return sound


def random_speed(
    wave_BS: tf.Tensor, lengths_B: tf.Tensor, key: tf.Tensor, config: AugmentConfig
) -> Sound:
    """Plays clips slower or faster, each no slower than its row has room for."""
    rows, samples = [size_of(wave_BS, 0)], size_of(wave_BS, 1)
    slowest_B = tf.maximum(slowest_speed(lengths_B, samples), config.speed_from)
    speed_B = _between(uniform(key, Draw.SPEED, rows), slowest_B, config.speed_to)
    chosen_B = uniform(key, Draw.SPEED_ROWS, rows) < config.speed
    changed_BS, new_B = change_speed(mute_padding(wave_BS, lengths_B), lengths_B, speed_B)
    wave_BS = tf.where(chosen_B[:, None], changed_BS, wave_BS)
    return wave_BS, tf.where(chosen_B, new_B, lengths_B)


def random_band_limit(
    wave_BS: tf.Tensor, lengths_B: tf.Tensor, key: tf.Tensor, config: AugmentConfig
) -> Sound:
    """Takes the high notes from clips."""
    rows = [size_of(wave_BS, 0)]
    limits = config.band_limit_from_hz, config.band_limit_to_hz
    limit_hz_B = _between(uniform(key, Draw.BAND_LIMIT, rows), *limits)
    chosen_B = uniform(key, Draw.BAND_LIMIT_ROWS, rows) < config.band_limit
    changed_BS = limit_band(mute_padding(wave_BS, lengths_B), lengths_B, limit_hz_B, CODEC_HZ)
    return tf.where(chosen_B[:, None], changed_BS, wave_BS), lengths_B


def random_noise(
    wave_BS: tf.Tensor, lengths_B: tf.Tensor, key: tf.Tensor, config: AugmentConfig
) -> Sound:
    """Adds white noise to clips, measured against each clip's own power."""
    rows = [size_of(wave_BS, 0)]
    level_B = uniform(key, Draw.NOISE_LEVEL, rows)
    snr_B = _between(level_B, config.noise_from_db, config.noise_to_db)
    noise_BS = normal(key, Draw.NOISE, size_of(wave_BS, 0), size_of(wave_BS, 1))
    chosen_B = uniform(key, Draw.NOISE_ROWS, rows) < config.noise
    changed_BS = add_noise(mute_padding(wave_BS, lengths_B), lengths_B, snr_B, noise_BS)
    return tf.where(chosen_B[:, None], changed_BS, wave_BS), lengths_B


def random_gain(
    wave_BS: tf.Tensor, lengths_B: tf.Tensor, key: tf.Tensor, config: AugmentConfig
) -> Sound:
    """Makes clips louder or softer."""
    rows = [size_of(wave_BS, 0)]
    gain_B = _between(uniform(key, Draw.GAIN, rows), -config.gain_db, config.gain_db)
    chosen_B = uniform(key, Draw.GAIN_ROWS, rows) < config.gain
    changed_BS = change_gain(mute_padding(wave_BS, lengths_B), gain_B)
    return tf.where(chosen_B[:, None], changed_BS, wave_BS), lengths_B


def _between(share_B: tf.Tensor, low_B: float | tf.Tensor, high_B: float | tf.Tensor) -> tf.Tensor:
    return low_B + share_B * (high_B - low_B)
