"""The matrix product and the table of vectors.

Legend: N any leading axes, I numbers in, O numbers out.
"""

from typing import Any

import keras
import tensorflow as tf

from myxtts.layers.part import size_of_leading


class Linear(keras.layers.Layer):
    """A matrix and, unless it is told otherwise, a bias."""

    def __init__(
        self, width_in: int, width: int, name: str, *, start: str | float = "fan", bias: bool = True
    ) -> None:
        super().__init__(name=name)
        self._width_in, self._width, self._start, self._with_bias = width_in, width, start, bias

    def build(self, _shape: Any = None) -> None:
        """`start` is a standard deviation, or "fan": uniform up to 1 / sqrt(width_in)."""
        kernel, bias = starts(self._start, self._width_in)
        shape = (self._width_in, self._width)
        self.kernel = self.add_weight(shape=shape, initializer=kernel, name="kernel")
        if self._with_bias:
            self.bias = self.add_weight(shape=(self._width,), initializer=bias, name="bias")

    def call(self, x_NI: tf.Tensor) -> tf.Tensor:
        """As one product of two matrices, whatever the leading axes."""
        leading = size_of_leading(x_NI)
        kernel = tf.convert_to_tensor(self.kernel)
        flat = tf.custom_gradient(_product)(tf.reshape(x_NI, [-1, self._width_in]), kernel)
        if self._with_bias:
            flat = tf.nn.bias_add(flat, tf.convert_to_tensor(self.bias))
        return tf.reshape(flat, [*leading, self._width])


def _product(x_MI: tf.Tensor, kernel_IO: tf.Tensor) -> Any:
    """The matrix product, whose gradient turns the kernel before it multiplies with it.

    Left to itself TensorFlow folds the turn into the product, which takes a third longer on a CPU.
    """

    def gradients(error_MO: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Snapshot does nothing, but nothing is folded across it.
        turned_OI = tf.raw_ops.Snapshot(input=tf.transpose(kernel_IO))
        return tf.matmul(error_MO, turned_OI), tf.matmul(x_MI, error_MO, transpose_a=True)

    return tf.matmul(x_MI, kernel_IO), gradients


class Table(keras.layers.Layer):
    """One vector for each id or position."""

    def __init__(self, entries: int, width: int, name: str, start: float) -> None:
        super().__init__(name=name)
        self._shape, self._start = (entries, width), start

    def build(self, _shape: Any = None) -> None:
        """Normal numbers of the given spread."""
        start = keras.initializers.RandomNormal(stddev=self._start)
        self.table = self.add_weight(shape=self._shape, initializer=start, name="table")

    def call(self, ids_N: tf.Tensor) -> tf.Tensor:
        """The ids' vectors."""
        return tf.gather(tf.convert_to_tensor(self.table), ids_N)

    def first(self, count: Any) -> tf.Tensor:
        """The vectors of positions 0 to count - 1, in the layer's compute type."""
        return tf.cast(tf.convert_to_tensor(self.table)[:count], self.compute_dtype)


def starts(start: str | float, fan_in: int) -> tuple[Any, Any]:
    """Initialisers of a kernel and its bias: normal of a given spread and 0, or by the fan-in."""
    if isinstance(start, float):
        return keras.initializers.RandomNormal(stddev=start), keras.initializers.Zeros()
    limit = fan_in**-0.5
    return (
        keras.initializers.RandomUniform(-limit, limit),
        keras.initializers.RandomUniform(-limit, limit),
    )
