"""Convolutions over time whose kernels have a length and a direction of their own (weight norm).

All take and give (B, 1, T, channels): TensorFlow's convolution over (B, T, channels) is the
two-dimensional one between two reshapes, and those keep the graph's optimizer from joining the
convolution with the bias, the leaky ReLU and the sum after it.

Legend: B batch, T time, I channels in, O channels out, K taps, M taps of the plain kernel.
"""

from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from myxtts.layers.linear import starts
from myxtts.layers.tiles import convolve_tiles, pays_in_tiles, tiled_kernel

START = 0.01  # Spread of a kernel's first numbers, as in the paper of HiFi-GAN.

Kernel = Literal["normed", "plain", "tiled"]
"""How a kernel is kept: with its norm, to be trained; plain; or, where that pays, in tiles."""


class Normed(keras.layers.Layer):
    """A direction, the magnitude of each slice of its last axis, and a bias.

    A folded one has the kernel itself instead, which takes no work before the convolution.
    """

    def __init__(
        self, name: str, shape: tuple[int, int, int], width: int, *, kernel: Kernel
    ) -> None:
        super().__init__(name=name)
        self._shape, self._width, self._is_folded = shape, width, kernel != "normed"

    def build(self, _shape: Any = None) -> None:
        """The norms are taken in float32 under mixed precision, as every norm."""
        start = keras.initializers.RandomNormal(stddev=START)
        taps, rows, columns = self._shape
        if self._is_folded:
            kept = self.kept(self._arranged(tf.zeros(self._shape))).shape
            self.kernel = self.add_weight(shape=kept, initializer=start, name="kernel")
        else:
            length = keras.initializers.Constant(START * (taps * rows) ** 0.5)
            self.magnitude = self.add_weight(
                shape=(columns,), initializer=length, name="magnitude", autocast=False
            )
            self.direction = self.add_weight(
                shape=self._shape, initializer=start, name="direction", autocast=False
            )
        _, bias = starts("fan", taps * (rows + columns - self._width))
        self.bias = self.add_weight(shape=(self._width,), initializer=bias, name="bias")

    def kept(self, kernel: tf.Tensor) -> tf.Tensor:
        """As this layer keeps a plain kernel, if it is folded."""
        return kernel

    def folded(self) -> tf.Tensor:
        """The plain kernel (M, I, outputs), in float32 unless it is stored so."""
        if self._is_folded:
            return tf.convert_to_tensor(self.kernel)
        direction = tf.convert_to_tensor(self.direction)
        square = tf.reduce_sum(tf.square(direction), [0, 1])
        scale = tf.convert_to_tensor(self.magnitude) * tf.math.rsqrt(square)
        return self._arranged(direction * scale)

    def _arranged(self, kernel: tf.Tensor) -> tf.Tensor:
        return kernel

    def _convolve(self, x_B1TI: tf.Tensor, dilation: int = 1) -> tf.Tensor:
        kernel_1MIO = tf.cast(self.folded(), self.compute_dtype)[None]
        return tf.nn.conv2d(x_B1TI, kernel_1MIO, 1, "SAME", dilations=[1, dilation])


class NormedConvolution(Normed):
    """A kernel of odd length over time, with as many zeros on both sides."""

    def __init__(
        self, width_in: int, width: int, name: str, *, taps: int, dilation: int, kernel: Kernel
    ) -> None:
        shape = (taps, width_in, width)
        super().__init__(name, shape, width, kernel=kernel)
        self._dilation, self._tiled = dilation, kernel == "tiled" and pays_in_tiles(*shape)

    def kept(self, kernel: tf.Tensor) -> tf.Tensor:
        """Ready for tiles, where it is."""
        return tiled_kernel(kernel) if self._tiled else kernel

    def call(self, x_B1TI: tf.Tensor, onto_B1TO: tf.Tensor | None = None) -> tf.Tensor:
        """(B, 1, T, O), added onto other numbers where there are some."""
        if self._tiled:
            kernel = tf.convert_to_tensor(self.kernel)
            out = convolve_tiles(x_B1TI[:, 0], kernel, self._shape[0], self._dilation)[:, None]
        else:
            out = self._convolve(x_B1TI, self._dilation)
        bias = tf.convert_to_tensor(self.bias)
        if onto_B1TO is None:
            return tf.nn.bias_add(out, bias)
        # The bias not on `out`: TensorFlow's remapper would join convolution, bias and sum though
        # others hear the sum too, fail with an error on the screen, and join nothing at all.
        return tf.nn.bias_add(onto_B1TO, bias) + out


class NormedUpsampling(Normed):
    """A transposed convolution: `rate` samples for each."""

    def __init__(
        self, width_in: int, width: int, name: str, *, taps: int, rate: int, kernel: Kernel
    ) -> None:
        self._rate = rate
        super().__init__(name, (taps, width, width_in), width, kernel=kernel)

    def call(self, x_B1TI: tf.Tensor) -> tf.Tensor:
        """(B, 1, T x rate, O)."""
        side_by_side = self._convolve(x_B1TI)
        batch, _, time, _ = (
            fixed if fixed is not None else asked
            for fixed, asked in zip(x_B1TI.shape, tf.unstack(tf.shape(x_B1TI)), strict=True)
        )
        out = tf.reshape(side_by_side, [batch, 1, time * self._rate, self._width])
        return tf.nn.bias_add(out, tf.convert_to_tensor(self.bias))

    def _arranged(self, kernel_KOI: tf.Tensor) -> tf.Tensor:
        """The kernel that makes all `rate` samples of an input at once, side by side.

        Sample r of input q sums, over the inputs q + j, products with tap r + side - rate j.
        """
        taps, width, width_in = self._shape
        side = (taps - self._rate) // 2
        reach = (side + self._rate - 1) // self._rate
        j_M1 = np.arange(-reach, reach + 1)[:, None]
        tap_MR = np.arange(self._rate) + side - self._rate * j_M1
        zero = np.where(
            (tap_MR >= 0) & (tap_MR < taps), tap_MR, taps
        )  # The tap put after the last.
        padded = tf.pad(kernel_KOI, [[0, 1], [0, 0], [0, 0]])
        kernel_MROI = tf.gather(padded, zero)
        kernel_MIRO = tf.transpose(kernel_MROI, [0, 3, 1, 2])
        return tf.reshape(kernel_MIRO, [2 * reach + 1, width_in, self._rate * width])
