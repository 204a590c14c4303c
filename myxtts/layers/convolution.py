"""Convolution over time, which keeps PyTorch's padding.

Legend: B batch, T time, I channels in, O channels out.
"""

from typing import Any

import keras
import tensorflow as tf

from myxtts.layers.linear import starts
from myxtts.layers.tiles import convolve_tiles, pays_in_tiles, tiled_kernel


class Convolution(keras.layers.Layer):
    """A kernel of odd length over time, with as many zeros on both sides.

    A tiled one has its kernel ready for `convolve_tiles` where that pays: to be used, not trained.
    """

    def __init__(  # noqa: PLR0913
        self,
        width_in: int,
        width: int,
        name: str,
        *,
        taps: int,
        stride: int = 1,
        dilation: int = 1,
        bias: bool = True,
        tiled: bool = False,
    ) -> None:
        super().__init__(name=name)
        self._shape = (taps, width_in, width)
        self._tiled = tiled and stride == 1 and pays_in_tiles(*self._shape)
        self._stride, self._dilation, self._with_bias = stride, dilation, bias

    def build(self, _shape: Any = None) -> None:
        """Uniform up to 1 / sqrt(taps x channels in)."""
        taps, width_in, width = self._shape
        kernel, bias = starts("fan", taps * width_in)
        shape = tiled_kernel(tf.zeros(self._shape)).shape if self._tiled else self._shape
        self.kernel = self.add_weight(shape=shape, initializer=kernel, name="kernel")
        if self._with_bias:
            self.bias = self.add_weight(shape=(width,), initializer=bias, name="bias")

    def call(self, x_BTI: tf.Tensor) -> tf.Tensor:
        """(B, ceil(T / stride), O)."""
        kernel = tf.convert_to_tensor(self.kernel)
        if self._tiled:
            out = convolve_tiles(x_BTI, kernel, self._shape[0], self._dilation)
        else:
            out = convolve(x_BTI, kernel, stride=self._stride, dilation=self._dilation)
        return tf.nn.bias_add(out, tf.convert_to_tensor(self.bias)) if self._with_bias else out

    def take(self, other: "Convolution") -> None:
        """The weights of one that is not tiled."""
        kernel = tf.convert_to_tensor(other.kernel)
        self.kernel.assign(tiled_kernel(kernel) if self._tiled else kernel)
        if self._with_bias:
            self.bias.assign(other.bias)


def convolve(
    x_BTI: tf.Tensor, kernel: tf.Tensor, *, stride: int = 1, dilation: int = 1
) -> tf.Tensor:
    """As many zeros on both sides as leave the length alone; "SAME" would differ at strides."""
    side = (kernel.shape[0] - 1) * dilation // 2
    if stride > 1:
        padded = tf.pad(x_BTI, [[0, 0], [side, side], [0, 0]])
        return tf.nn.conv1d(padded, kernel, stride, "VALID")
    return tf.nn.conv1d(x_BTI, kernel, 1, "SAME", dilations=dilation)
