"""Convolutions over time for the discriminators: strided, grouped, their kernels normed.

Weight norm gives each output channel's kernel a length of its own; spectral norm divides the whole
kernel by the most that it can lengthen a vector. Both work in float32 under mixed precision.

Legend: B batch, P lanes, T time, I channels in, O channels out, K taps, G channels of a group,
R taps and channels of a group together.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from myxtts.layers import starts

POWER_STEPS = 8
"""Rounds in which spectral norm looks for the direction that is lengthened most."""


class Strided(keras.layers.Layer):
    """A kernel of odd length over time, the same on all lanes, with as many zeros on both sides."""

    def __init__(
        self, width_in: int, width: int, name: str, *, taps: int, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(name=name)
        self._shape = (taps, width_in // groups, width)
        self._stride, self._groups = stride, groups

    def build(self, _shape: Any = None) -> None:
        """Uniform up to 1 / sqrt(taps x channels of a group)."""
        taps, inputs, width = self._shape
        kernel, bias = starts("fan", taps * inputs)
        self._build_kernel(kernel)
        self.bias = self.add_weight(shape=(width,), initializer=bias, name="bias")

    def call(self, x_BPTI: tf.Tensor) -> tf.Tensor:
        """(B, P, ceil(T / stride), O)."""
        kernel_1KGO = tf.cast(self.kernel_KGO(), self.compute_dtype)[None]
        out = self._convolve(x_BPTI, kernel_1KGO)
        return tf.nn.bias_add(out, tf.convert_to_tensor(self.bias))

    def kernel_KGO(self) -> tf.Tensor:  # noqa: N802
        """The plain kernel, in float32."""
        raise NotImplementedError

    def _build_kernel(self, start: keras.initializers.Initializer) -> None:
        raise NotImplementedError

    def _convolve(self, x_BPTI: tf.Tensor, kernel_1KGO: tf.Tensor) -> tf.Tensor:
        side = [self._shape[0] // 2] * 2
        padding = [[0, 0], [0, 0], side, [0, 0]]
        # One by one: TensorFlow has no gradients of a grouped convolution on a CPU, and XLA there
        # takes seconds for one.
        groups = zip(
            tf.split(x_BPTI, self._groups, axis=-1),
            tf.split(kernel_1KGO, self._groups, axis=-1),
            strict=True,
        )
        parts = [tf.nn.conv2d(x, kernel, [1, self._stride], padding) for x, kernel in groups]
        return tf.concat(parts, -1) if len(parts) > 1 else parts[0]


class WeightNormed(Strided):
    """A direction and a magnitude for each output channel."""

    def _build_kernel(self, start: keras.initializers.Initializer) -> None:
        self.direction = self.add_weight(
            shape=self._shape, initializer=start, name="direction", autocast=False
        )
        # The usual length of a kernel that starts by its fan-in, whatever its size.
        length = keras.initializers.Constant(3**-0.5)
        self.magnitude = self.add_weight(
            shape=self._shape[-1:], initializer=length, name="magnitude", autocast=False
        )

    def kernel_KGO(self) -> tf.Tensor:  # noqa: N802
        """Each output channel's direction at its magnitude."""
        direction_KGO = tf.convert_to_tensor(self.direction)
        square_O = tf.reduce_sum(tf.square(direction_KGO), [0, 1])
        return direction_KGO * (tf.convert_to_tensor(self.magnitude) * tf.math.rsqrt(square_O))


class SpectralNormed(Strided):
    """A kernel divided by its largest singular value."""

    def _build_kernel(self, start: keras.initializers.Initializer) -> None:
        self.kernel = self.add_weight(
            shape=self._shape, initializer=start, name="kernel", autocast=False
        )

    def kernel_KGO(self) -> tf.Tensor:  # noqa: N802
        """As found anew at each call from the same start, so that no call leaves a trace."""
        kernel_KGO = tf.convert_to_tensor(self.kernel)
        kernel_RO = tf.reshape(kernel_KGO, [-1, self._shape[-1]])
        return kernel_KGO / largest_singular(kernel_RO)


def largest_singular(matrix_RO: tf.Tensor, steps: int = POWER_STEPS) -> tf.Tensor:
    """The most by which the matrix lengthens a vector, from below; its gradient is exact there."""
    start = np.random.default_rng(0).standard_normal((matrix_RO.shape[1], 1))
    held_RO = tf.stop_gradient(matrix_RO)
    right_O1 = tf.math.l2_normalize(tf.constant(start, tf.float32))
    left_R1 = tf.math.l2_normalize(tf.matmul(held_RO, right_O1))
    for _ in range(steps):
        right_O1 = tf.math.l2_normalize(tf.matmul(held_RO, left_R1, transpose_a=True))
        left_R1 = tf.math.l2_normalize(tf.matmul(held_RO, right_O1))
    return tf.reduce_sum(left_R1 * tf.matmul(matrix_RO, right_O1))
