"""The network on one model device: gradients of a batch, their update, each a compiled program.

Legend: a found is what one batch taught one device, every number of it a mean over its clips.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from myxtts.batch import Tensors
from myxtts.learner.learning import parted
from myxtts.learner.student import Lesson, Moment, Student, Variables
from myxtts.optimizer import AdamW, Habits, LossScale, cut, squared_length
from myxtts.pipeline import Program

Named = Mapping[str, tf.Tensor]


class At(NamedTuple):
    """Where a run stands."""

    step: int
    """Counted from 1."""
    share: float
    """How much of the run is done."""
    rate: float
    """The learning rate."""


class Found(NamedTuple):
    """What a batch taught; players' gradients by PLAYER/NAME, multiplied by the loss scale."""

    weight: tf.Tensor
    scalars: Named
    gradients: Named
    means: Tensors
    samples: Tensors


class Copy:
    """One device's student, and the optimizer of the weights that this device takes care of."""

    def __init__(self, student: Student, device: str, seed: int, habits: Habits) -> None:
        self.device = device
        self.student = student
        self._seed = seed
        self._players, frozen = parted(student.players, habits)
        self.weights, self.frozen = joined(self._players), joined(frozen)
        self.finders = {
            jit: Program(
                self._find, device, jit=jit, name="gradients under XLA" if jit else "gradients"
            )
            for jit in (False, True)
        }
        self.judge = Program(self._judge, device, name="judge")
        self.weigh = Program(_weigh, device, name="weigh")
        self.add = Program(_add, device, name="accumulate")
        self.divide = Program(_divide, device, name="divide")
        self.mean = Program(_mean, device, name="average")
        self.lengths = Program(self._lengths, device, name="lengths")
        self.update = Program(self._update, device, name="update")
        self.take_over = Program(self._take_over, device, name="take_over")

    def prepare(self, owned: Sequence[str], habits: Habits) -> None:
        """Makes the optimizer of these weights; the others come from their owners."""
        with tf.device(self.device):
            self.optimizer = AdamW({name: self.weights[name] for name in owned}, habits)
            self.scale = LossScale(on=habits.scaled)

    @property
    def programs(self) -> list[Program]:
        """Everything that it has compiled."""
        means = (self.judge, self.weigh, self.add, self.divide, self.mean)
        return [*self.finders.values(), *means, self.lengths, self.update, self.take_over]

    @property
    def alike(self) -> dict[str, Any]:
        """What is the same in every copy."""
        about = {"updates": self.optimizer.updates, **self.scale.variables}
        return {**self.weights, **dict(self.student.state), **about}

    def moment(self, batch: int, at: At) -> Moment:
        """When this is, on the device; a batch's number is the key of all its random numbers."""
        with tf.device(self.device):
            # In 64 bits: TensorFlow looks for int32 arguments on the host.
            key = tf.constant([self._seed, batch], tf.int64)
            return Moment(key, tf.constant(at.step, tf.int64), tf.constant(at.share, tf.float32))

    def _find(self, features: Tensors, moment: Moment) -> Found:
        players = self._players
        with tf.GradientTape(persistent=len(players) > 1) as tape:
            lesson = self.student.learn(features, _keyed(moment))
            losses = {player: loss * self.scale.value for player, loss in lesson.losses.items()}
        gradients = {
            player: gradients_of(tape, losses[player], weights)
            for player, weights in players.items()
        }
        return Found(lesson.weight, lesson.scalars, joined(gradients), *lesson[2:4])

    def _judge(self, features: Tensors) -> Found:
        lesson: Lesson = self.student.judge(features)
        return Found(lesson.weight, lesson.scalars, {}, {}, {})

    def _lengths(self, gradients: Named) -> Named:
        """The squared length of each player's gradients, the loss scale taken out."""
        return {
            player: squared_length(
                [g for name, g in gradients.items() if player_of(name) == player]
            )
            / tf.square(self.scale.value)
            for player in self._players
        }

    def _update(
        self, found: Found, lengths: Named, moment: Moment, rate: tf.Tensor
    ) -> tuple[Named, Named]:
        """New values of the owned weights, and what the log shows of the update."""
        norms = {player: tf.sqrt(lengths[player]) for player in self._players}
        total = tf.sqrt(tf.add_n(list(lengths.values())))
        finite = tf.math.is_finite(total)
        factors = {
            player: cut(norm, self.optimizer.habits.longest) / self.scale.value
            for player, norm in norms.items()
        }

        def move() -> tf.Tensor:
            self.optimizer.update(
                found.gradients, rate, {n: factors[player_of(n)] for n in found.gradients}
            )
            self.student.absorb(found.means, found.samples, _keyed(moment))
            return tf.zeros([])

        # An overflow leaves every weight as it was; without a loss scale the run then ends.
        tf.cond(finite, move, lambda: tf.zeros([]))
        owned = {name: tf.convert_to_tensor(self.weights[name]) for name in found.gradients}
        if not self.scale.on:
            return owned, {"gradient_norm": total}
        # With a loss scale an overflow is no fault of the run's: it is counted, not told as one.
        self.scale.heed(finite)
        skipped = 1 - tf.cast(finite, tf.float32)
        return owned, {"gradient_norm": tf.where(finite, total, 0.0), "skipped": skipped}

    def _take_over(self, values: Named) -> None:
        for name, value in values.items():
            self.weights[name].assign(value)


def _keyed(moment: Moment) -> Moment:
    return moment._replace(key=tf.cast(moment.key, tf.int32))


def joined(players: Mapping[str, Variables]) -> dict[str, Any]:
    """PLAYER/NAME → what stands there."""
    return {f"{p}/{name}": each for p, named in players.items() for name, each in named.items()}


def player_of(name: str) -> str:
    """The player in PLAYER/NAME."""
    return name.partition("/")[0]


def gradients_of(tape: tf.GradientTape, loss: tf.Tensor, weights: Variables) -> Named:
    """Dense, and zeros for a weight that the loss does not depend on."""
    sources = [tf_value(weight) for weight in weights.values()]
    found = tape.gradient(loss, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return dict(zip(weights, map(tf.convert_to_tensor, found), strict=True))


def tf_value(weight: Any) -> tf.Variable:
    """TensorFlow's variable inside Keras's."""
    return weight if isinstance(weight, tf.Variable) else weight.value


def _weigh(found: Found) -> Found:
    return _times(found, found.weight)


def _add(total: Found, found: Found) -> Found:
    """The samples are the last batch's: a few are as good as any."""
    summed = tf.nest.map_structure(tf.add, _averaged(total), _averaged(_weigh(found)))
    return _with(found, total.weight + found.weight, summed)


def _divide(total: Found) -> Found:
    return _times(total, tf.math.divide_no_nan(1.0, total.weight))


def _mean(found: Sequence[Found]) -> Found:
    """The mean of several devices' by weight; nothing but zeros where all weigh nothing."""
    whole = tf.add_n([each.weight for each in found])
    weighed = [_averaged(_times(each, tf.math.divide_no_nan(each.weight, whole))) for each in found]
    summed = tf.nest.map_structure(lambda *each: tf.add_n(each), *weighed)
    samples = [each.samples for each in found]
    rows = tf.nest.map_structure(lambda *each: tf.concat(each, 0), *samples) if samples[0] else {}
    return _with(found[0]._replace(samples=rows), whole, summed)


def _averaged(found: Found) -> Tensors:
    return {"scalars": found.scalars, "gradients": found.gradients, "means": found.means}


def _with(found: Found, weight: tf.Tensor, averaged: Tensors) -> Found:
    return found._replace(weight=weight, **averaged)


def _times(found: Found, factor: tf.Tensor) -> Found:
    scaled = tf.nest.map_structure(lambda x: x * tf.cast(factor, x.dtype), _averaged(found))
    return _with(found, found.weight, scaled)


Make = Callable[[str], Student]
