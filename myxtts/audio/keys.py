"""Random draws that depend on the seed, the step and the row, and on nothing that ran before.

Legend: B batch.
"""

import math
from enum import IntEnum

import tensorflow as tf

ALGORITHM = "philox"  # Named, because "auto_select" takes another one on other devices.


class Draw(IntEnum):
    """Every random decision about sound; a new one gets a new number, or old runs change."""

    SLICE_LENGTH = 0
    SLICE_START = 1
    SPEED_ROWS = 2
    SPEED = 3
    BAND_LIMIT_ROWS = 4
    BAND_LIMIT = 5
    NOISE_ROWS = 6
    NOISE_LEVEL = 7
    NOISE = 8
    GAIN_ROWS = 9
    GAIN = 10
    CROP_START = 11
    VECTORS = 12
    WINDOW_START = 13


def step_key(seed: int | tf.Tensor, step: int | tf.Tensor) -> tf.Tensor:
    """The pair that all of a step's draws start from."""
    return tf.stack([tf.cast(seed, tf.int32), tf.cast(step, tf.int32)])


def uniform(key: tf.Tensor, draw: Draw, shape: list[int | tf.Tensor]) -> tf.Tensor:
    """Numbers from 0 up to 1, of 24 bits each."""
    # From whole bits, because TensorFlow's own floats take the low bits and XLA's the high
    # ones: a run would draw other numbers after a change of `compile`.
    inner = tf.random.fold_in(key, int(draw), alg=ALGORITHM)
    bits = tf.random.stateless_uniform(shape, inner, None, None, tf.int32, alg=ALGORITHM)
    return (tf.cast(bits // 2**8, tf.float32) + 2.0**23) * 2.0**-24


def below(share_B: tf.Tensor, limit_B: int | tf.Tensor) -> tf.Tensor:
    """A whole number from 0 to `limit_B - 1`, from a number from 0 up to 1."""
    # The product may round up to the limit itself.
    drawn_B = tf.cast(share_B * tf.cast(limit_B, tf.float32), tf.int32)
    return tf.minimum(drawn_B, limit_B - 1)


def normal(
    key: tf.Tensor, draw: Draw, rows: int | tf.Tensor, columns: int | tf.Tensor
) -> tf.Tensor:
    """Numbers of zero mean and unit variance, by Box and Muller's pairs."""
    pairs = uniform(key, draw, [rows, 2, (columns + 1) // 2])
    radius, angle = tf.sqrt(-2 * tf.math.log(1 - pairs[:, 0])), 2 * math.pi * pairs[:, 1]
    return tf.concat([radius * tf.cos(angle), radius * tf.sin(angle)], 1)[:, :columns]
