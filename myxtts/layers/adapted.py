"""A matrix that stays as it is, with two narrow ones beside it that learn.

Legend: N any leading axes, I numbers in, O numbers out, R the adapter's rank.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from myxtts.layers.linear import Linear, starts


class Adapter(NamedTuple):
    """How wide an adapter is, and how much its result counts."""

    rank: int
    scale: float


class Adapted(Linear):
    """kernel + scale * down * up; `up` starts at 0, and so the sum as the kernel alone."""

    def __init__(
        self, width_in: int, width: int, name: str, *, start: str | float, adapter: Adapter
    ) -> None:
        super().__init__(width_in, width, name, start=start)
        self._rank, self._scale = adapter

    def build(self, shape: Any = None) -> None:
        """The matrix and its adapter."""
        super().build(shape)
        start, _ = starts("fan", self._width_in)
        down, up = (self._width_in, self._rank), (self._rank, self._width)
        self.down = self.add_weight(shape=down, initializer=start, name="down")
        self.up = self.add_weight(shape=up, initializer=keras.initializers.Zeros(), name="up")

    def call(self, x_NI: tf.Tensor) -> tf.Tensor:
        """Through the narrow matrices, so that nothing is computed for a kernel that stays."""
        down_IR, up_RO = (tf.convert_to_tensor(each) for each in (self.down, self.up))
        narrow_MR = tf.matmul(tf.reshape(x_NI, [-1, self._width_in]), down_IR)
        whole_NO = super().call(x_NI)
        more_MO = tf.matmul(narrow_MR, up_RO) * self._scale
        return whole_NO + tf.reshape(more_MO, tf.shape(whole_NO))
