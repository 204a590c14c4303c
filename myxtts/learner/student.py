"""What the learner asks of a stage: networks that give a loss, and state that moves otherwise."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import tensorflow as tf

from myxtts.batch import Tensors

Variables = Mapping[str, Any]
"""Keras's variables or TensorFlow's, by name."""


class Moment(NamedTuple):
    """When a batch is learned from; tensors, so that no step is traced again."""

    key: tf.Tensor
    """int32[2]: where all random numbers of the batch start from."""
    step: tf.Tensor
    """int64 scalar, from 1."""
    share: tf.Tensor
    """float32 scalar: how much of the run is done."""


class Lesson(NamedTuple):
    """What a batch teaches; with several devices or batches it is averaged by weight."""

    losses: Mapping[str, tf.Tensor]
    """One scalar for each player, float32; its gradient goes to the player's weights alone."""
    scalars: Mapping[str, tf.Tensor]
    """What the log shows."""
    means: Tensors
    """What `absorb` needs of all clips; float32."""
    samples: Tensors
    """What `absorb` needs of some: several devices' are laid one behind the other."""
    weight: tf.Tensor
    """How many clips the batch held: rows without a clip teach nothing."""


class Pictures(NamedTuple):
    """What a student makes of a few clips, beside what is real: mels, or codes of mels."""

    real: tf.Tensor
    made: tf.Tensor
    frames: tf.Tensor
    """int64, for each clip: the mel frames that are sound."""


class Student(Protocol):
    """A stage's networks on one model device."""

    @property
    def players(self) -> Mapping[str, Variables]:
        """The weights that gradients move, by player: networks with a loss of their own."""

    @property
    def state(self) -> Variables:
        """What moves without gradients, such as a codebook."""

    def learn(self, features: Tensors, moment: Moment) -> Lesson:
        """The losses of a batch, in the graph of a compiled program."""

    def absorb(self, means: Tensors, samples: Tensors, moment: Moment) -> None:
        """Moves the state, in the graph of the compiled update: on every device alike."""

    def judge(self, features: Tensors) -> Lesson:
        """The losses of held-out clips: nothing random, nothing dropped."""


@runtime_checkable
class Pictured(Protocol):
    """A student whose doings can be looked at."""

    def pictures(self, features: Tensors) -> Pictures:
        """What it makes of the clips, in the graph of a compiled program; no weight moves."""
