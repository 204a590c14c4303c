"""Layers over bands and time, and what keeps a clip's padding out of them.

Legend: B batch, M mel bands, T time, I channels in, O channels out, C channels.
"""

from typing import Any

import keras
import tensorflow as tf

from myxtts.audio import length_mask, size_of
from myxtts.layers import starts

EPSILON = 1e-5


class ImageConvolution(keras.layers.Layer):
    """A square kernel of odd length, with as many zeros on all sides."""

    def __init__(
        self,
        width_in: int,
        width: int,
        name: str,
        *,
        taps: int = 3,
        stride: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__(name=name)
        self._shape, self._stride = (taps, taps, width_in, width), stride
        self._with_bias = bias

    def build(self, _shape: Any = None) -> None:
        """Uniform up to 1 / sqrt(taps x taps x channels in)."""
        taps, _, width_in, width = self._shape
        kernel, bias = starts("fan", taps * taps * width_in)
        self.kernel = self.add_weight(shape=self._shape, initializer=kernel, name="kernel")
        if self._with_bias:
            self.bias = self.add_weight(shape=(width,), initializer=bias, name="bias")

    def call(self, x_BMTI: tf.Tensor) -> tf.Tensor:
        """(B, ceil(M / stride), ceil(T / stride), O)."""
        side = [self._shape[0] // 2] * 2
        # Not "SAME", which pads an even length that is halved at its end alone.
        kernel = tf.convert_to_tensor(self.kernel)
        out = tf.nn.conv2d(x_BMTI, kernel, self._stride, [[0, 0], side, side, [0, 0]])
        return tf.nn.bias_add(out, tf.convert_to_tensor(self.bias)) if self._with_bias else out


class BatchNorm(keras.layers.Layer):
    """By the mean and variance of a training long past, which no call of ours ever moves."""

    def __init__(self, width: int, name: str) -> None:
        super().__init__(name=name, autocast=False)
        self._width = width

    def build(self, _shape: Any = None) -> None:
        """Scale 1 and shift 0, mean 0 and variance 1."""
        self.gamma = self._weight("gamma", "ones")
        self.beta = self._weight("beta", "zeros")
        self.moving_mean = self._weight("moving_mean", "zeros", trainable=False)
        self.moving_variance = self._weight("moving_variance", "ones", trainable=False)

    def _weight(self, name: str, start: str, *, trainable: bool = True) -> keras.Variable:
        shape = (self._width,)
        return self.add_weight(
            shape=shape, initializer=start, name=name, trainable=trainable, autocast=False
        )

    def call(self, x_BMTC: tf.Tensor) -> tf.Tensor:
        """In the layer's compute type."""
        mean, variance, gamma, beta = (
            tf.convert_to_tensor(weight)
            for weight in (self.moving_mean, self.moving_variance, self.gamma, self.beta)
        )
        scale_C = gamma * tf.math.rsqrt(variance + EPSILON)
        normal_BMTC = tf.cast(x_BMTC, tf.float32) * scale_C + (beta - mean * scale_C)
        return tf.cast(normal_BMTC, self.compute_dtype)


def muted(x_BMTC: tf.Tensor, frames_B: tf.Tensor | None) -> tf.Tensor:
    """Zeros after each clip's own frames, as they stand there when the clip is alone."""
    if frames_B is None:
        return x_BMTC
    mine_B1T1 = length_mask(frames_B, size_of(x_BMTC, 2))[:, None, :, None]
    return tf.where(mine_B1T1, x_BMTC, tf.zeros([], x_BMTC.dtype))


def mean_over_image(x_BMTC: tf.Tensor, frames_B: tf.Tensor | None) -> tf.Tensor:
    """float32 (B, C): over all bands and each clip's own frames."""
    wide_BMTC = tf.cast(x_BMTC, tf.float32)
    if frames_B is None:
        return tf.reduce_mean(wide_BMTC, [1, 2])
    count_B1 = tf.cast(frames_B * x_BMTC.shape[1], tf.float32)[:, None]
    return tf.reduce_sum(muted(wide_BMTC, frames_B), [1, 2]) / count_B1
