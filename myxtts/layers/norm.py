"""The norms, in float32 whatever the rest computes in.

Legend: N any leading axes, B batch, T time, D width, G groups, S channels of a group.
"""

from typing import Any

import keras
import tensorflow as tf

EPSILON = 1e-5


class LayerNorm(keras.layers.Layer):
    """Zero mean and unit variance over the last axis."""

    def __init__(self, width: int, name: str) -> None:
        super().__init__(name=name, autocast=False)
        self._width = width

    def build(self, _shape: Any = None) -> None:
        """Scale 1 and shift 0."""
        shape = (self._width,)
        self.gamma = self.add_weight(shape=shape, initializer="ones", name="gamma", autocast=False)
        self.beta = self.add_weight(shape=shape, initializer="zeros", name="beta", autocast=False)

    def call(self, x_ND: tf.Tensor) -> tf.Tensor:
        """In the layer's compute type."""
        wide = tf.cast(x_ND, tf.float32)
        mean, variance = tf.nn.moments(wide, [-1], keepdims=True)
        normal = (wide - mean) * tf.math.rsqrt(variance + EPSILON) * self.gamma + self.beta
        return tf.cast(normal, self.compute_dtype)


class RmsNorm(keras.layers.Layer):
    """Length sqrt(D) for every vector, before the scale."""

    def __init__(self, width: int, name: str) -> None:
        super().__init__(name=name, autocast=False)
        self._width = width

    def build(self, _shape: Any = None) -> None:
        """Scale 1."""
        self.gamma = self.add_weight(
            shape=(self._width,), initializer="ones", name="gamma", autocast=False
        )

    def call(self, x_ND: tf.Tensor) -> tf.Tensor:
        """A vector shorter than 1e-12 is divided by 1e-12."""
        wide = tf.cast(x_ND, tf.float32)
        square = tf.reduce_sum(tf.square(wide), -1, keepdims=True)
        unit = wide * tf.math.rsqrt(tf.maximum(square, 1e-24))
        return tf.cast(unit * self._width**0.5 * self.gamma, self.compute_dtype)


class GroupNorm(keras.layers.Layer):
    """Zero mean and unit variance over all of time and a group of neighbouring channels."""

    def __init__(self, width: int, name: str) -> None:
        super().__init__(name=name, autocast=False)
        self._width, self._groups = width, groups_of(width)

    def build(self, _shape: Any = None) -> None:
        """Scale 1 and shift 0."""
        shape = (self._width,)
        self.gamma = self.add_weight(shape=shape, initializer="ones", name="gamma", autocast=False)
        self.beta = self.add_weight(shape=shape, initializer="zeros", name="beta", autocast=False)

    def call(self, x_BTD: tf.Tensor) -> tf.Tensor:
        """In the layer's compute type."""
        wide = tf.cast(x_BTD, tf.float32)
        centred = wide - self._over_group(tf.reduce_mean(wide, 1, keepdims=True))
        variance_B1D = self._over_group(tf.reduce_mean(tf.square(centred), 1, keepdims=True))
        scale_B1D = tf.math.rsqrt(variance_B1D + EPSILON) * self.gamma
        return tf.cast(centred * scale_B1D + self.beta, self.compute_dtype)

    def _over_group(self, x_B1D: tf.Tensor) -> tf.Tensor:
        """Every channel's value becomes the mean of its group's."""
        size = self._width // self._groups
        x_BGS = tf.reshape(x_B1D, [-1, self._groups, size])
        mean_BGS = tf.repeat(tf.reduce_mean(x_BGS, 2, keepdims=True), size, 2)
        return tf.reshape(mean_BGS, [-1, 1, self._width])


def groups_of(width: int) -> int:
    """The reference's rule: 32, fewer for narrow layers, halved until they divide the width."""
    groups = 8 if width <= 16 else 16 if width <= 64 else 32
    while width % groups:
        groups //= 2
    return groups
