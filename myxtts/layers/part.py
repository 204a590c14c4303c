"""A layer made of layers, and the network at the top, which give all theirs weights at once."""

from typing import Any

import keras
import tensorflow as tf

from myxtts.audio import size_of

Precision = str
"""A Keras dtype policy: "float32", "mixed_bfloat16", "mixed_float16"."""


class Part(keras.layers.Layer):
    """A layer made of layers, which gives them all their weights when it is built."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)

    def build(self, _shape: Any = None) -> None:
        """Under this layer's own name, so that a weight's path tells where it stands."""
        _build_inner(self)


class Network(keras.Model):
    """A whole network: its weights are there once it is made, whatever it will be given."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)

    def build(self, _shape: Any = None) -> None:
        """Gives every layer its weights."""
        _build_inner(self)

    def made(self, precision: Precision = "float32") -> None:
        """Ends a constructor: the type to compute in, then the weights."""
        for layer in self._flatten_layers():
            layer.dtype_policy = precision
        self.build()


def _build_inner(whole: keras.layers.Layer) -> None:
    for layer in whole._flatten_layers(recursive=False, include_self=False):
        layer.build(None)


def size_of_leading(x_NI: tf.Tensor) -> list[Any]:
    """All axes but the last, as numbers where they are known."""
    return [size_of(x_NI, axis) for axis in range(len(x_NI.shape) - 1)]
