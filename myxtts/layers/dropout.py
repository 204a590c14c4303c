"""Dropout whose random numbers are a function of a key: the same key drops the same numbers."""

from dataclasses import dataclass, replace

import tensorflow as tf

STEP = (0x2C1B3C6D, 0x297A2D39)  # Odd, and without a pattern of bits: one for each half of a key.
STEPS = 2**16  # Of the rate: two random bytes decide on a number.


@dataclass(frozen=True)
class Dropout:
    """How much is dropped, and the key of the random numbers."""

    rate: float
    """Share of the numbers that become zero, to a 65,536th."""
    key: tf.Tensor
    """int32[2]"""

    def child(self, number: int) -> "Dropout":
        """The same rate with another key, for another place in the network."""
        return replace(self, key=(self.key + (number + 1)) * tf.constant(STEP, tf.int32))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Zero where dropped, larger elsewhere, so that the mean stays."""
        dropped = round(self.rate * STEPS)
        keep = random_shorts(tf.shape(x), self.key) >= tf.constant(dropped - STEPS // 2, tf.int16)
        # where, not a product: what the backward pass keeps is a byte for each number.
        return tf.where(keep, x * (STEPS / (STEPS - dropped)), tf.zeros([], x.dtype))


def random_shorts(shape: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """Even random numbers, int16, two from each number of the generator.

    Not int32: on a GPU, TensorFlow reshapes and compares those on the host.
    """
    size = tf.reduce_prod(shape)
    words = tf.random.stateless_uniform(
        [(size + 1) // 2], key, minval=None, maxval=None, dtype=tf.int32
    )
    return tf.reshape(tf.reshape(tf.bitcast(words, tf.int16), [-1])[:size], shape)
