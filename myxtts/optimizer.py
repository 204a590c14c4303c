"""AdamW over named weights, with the clipping, loss scale and moving average that go with it.

Everything happens inside a compiled program, and everything that a resumed run needs is a
variable: `variables` and `average` name them all.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

EPSILON = 1e-8
DECAYED = ("kernel", "direction")
"""Weights that decay; tables, norms, magnitudes and biases have none."""
FIRST_SCALE = 2.0**15
LARGEST_SCALE = 2.0**24
PATIENCE = 1000
"""Updates in a row without an overflow after which the loss scale doubles."""

Gradients = Mapping[str, tf.Tensor]


class Habits(NamedTuple):
    """What does not change during a run."""

    betas: tuple[float, float]
    decay: float
    """Of the weights, for each unit of the learning rate."""
    longest: float
    """Norm to which longer gradients are cut; 0 cuts none."""
    average: float = 0.0
    """Share of the old value in the moving average of the weights; 0 keeps none."""
    scaled: bool = False
    """Whether gradients come multiplied by a loss scale, as float16 needs."""
    learning: tuple[str, ...] = ("*",)
    """Names, with * and ?, of the weights that move."""
    frozen: tuple[str, ...] = ()
    """Names, with * and ?, of weights that stay all the same."""


class AdamW:
    """Moments of the weights that one device takes care of."""

    def __init__(self, weights: Mapping[str, keras.Variable], habits: Habits) -> None:
        self.habits = habits
        self._weights = weights
        self._first = {name: _zeros(weight) for name, weight in weights.items()}
        self._second = {name: _zeros(weight) for name, weight in weights.items()}
        # Where nothing is averaged yet, the average is the weights themselves.
        kept = weights if habits.average else {}
        self.average = {name: tf.Variable(weight.value) for name, weight in kept.items()}
        self.updates = tf.Variable(0, dtype=tf.int64, trainable=False)

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """Everything but the weights and their averages, by a name for each."""
        named = {"updates": self.updates}
        for kind, each in (("first", self._first), ("second", self._second)):
            named |= {f"{kind}/{name}": variable for name, variable in each.items()}
        return named

    def update(
        self, gradients: Gradients, rate: tf.Tensor, factors: Mapping[str, tf.Tensor]
    ) -> None:
        """Moves every weight; a weight's gradient is multiplied by its factor first."""
        self.updates.assign_add(1)
        count = tf.cast(self.updates, tf.float32)
        beta_1, beta_2 = self.habits.betas
        step = rate * tf.sqrt(1 - beta_2**count) / (1 - beta_1**count)
        # Epsilon stands beside the corrected root, so it is corrected the other way here.
        epsilon = EPSILON * tf.sqrt(1 - beta_2**count)
        for name, weight in self._weights.items():
            gradient = tf.cast(gradients[name], tf.float32) * factors[name]
            first, second = self._first[name], self._second[name]
            first.assign(beta_1 * first + (1 - beta_1) * gradient)
            second.assign(beta_2 * second + (1 - beta_2) * tf.square(gradient))
            moved = weight.value - step * first / (tf.sqrt(second) + epsilon)
            if name.rpartition("/")[2] in DECAYED:
                moved -= rate * self.habits.decay * weight.value
            weight.assign(moved)
            if name in self.average:
                old = self.average[name]
                old.assign(old + (1 - self.habits.average) * (weight.value - old))


class LossScale:
    """What a float16 loss is multiplied by, so that small gradients do not vanish."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self.value = tf.Variable(FIRST_SCALE if on else 1.0, trainable=False)
        self.healthy = tf.Variable(0, dtype=tf.int64, trainable=False)

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """What a resumed run needs of it."""
        return {"scale": self.value, "healthy": self.healthy} if self.on else {}

    def heed(self, finite: tf.Tensor) -> None:
        """Halves after an overflow, doubles after a long time without one."""
        healthy = tf.where(finite, self.healthy + 1, tf.zeros([], tf.int64))
        grown = tf.where(healthy >= PATIENCE, tf.minimum(2 * self.value, LARGEST_SCALE), self.value)
        self.value.assign(tf.where(finite, grown, tf.maximum(self.value / 2, 1.0)))
        self.healthy.assign(tf.where(healthy >= PATIENCE, tf.zeros([], tf.int64), healthy))


def squared_length(gradients: Sequence[tf.Tensor]) -> tf.Tensor:
    """The square of the length of all gradients together, in float32."""
    squares = [tf.reduce_sum(tf.square(tf.cast(each, tf.float32))) for each in gradients]
    return tf.add_n(squares) if squares else tf.zeros([])


def cut(length: tf.Tensor, longest: float) -> tf.Tensor:
    """What gradients of this length are multiplied by so that none is longer than allowed."""
    return longest / tf.maximum(length, longest) if longest else tf.ones_like(length)


def _zeros(weight: keras.Variable) -> tf.Variable:
    return tf.Variable(tf.zeros(weight.shape, tf.float32), trainable=False)
