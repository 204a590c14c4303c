"""Dropout whose random numbers are a function of a key: the same key drops the same numbers."""

from typing import NamedTuple

import tensorflow as tf

STEP = (0x2C1B3C6D, 0x297A2D39)  # Odd, and without a pattern of bits: one for each half of a key.


class Dropout(NamedTuple):
    """How much is dropped, and the key of the random numbers."""

    rate: float
    """Share of the numbers that become zero."""
    key: tf.Tensor
    """int32[2]"""

    def child(self, number: int) -> "Dropout":
        """The same rate with another key, for another place in the network."""
        return self._replace(key=(self.key + (number + 1)) * tf.constant(STEP, tf.int32))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Zero where dropped, larger elsewhere, so that the mean stays."""
        keep = tf.random.stateless_uniform(tf.shape(x), self.key) >= self.rate
        scale = tf.constant(1 / (1 - self.rate), x.dtype)
        return x * tf.cast(keep, x.dtype) * scale
