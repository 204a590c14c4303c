"""The norms over one vector, in float32 whatever the rest computes in.

Legend: N any leading axes, D width.
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
