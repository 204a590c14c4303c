"""One step on one device or several: the same lesson, copies of the same bits."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.batch import Batch, Tensors
from myxtts.learner import At, Learner, Lesson, Moment, Settings, Variables, share_out
from myxtts.optimizer import Habits
from myxtts.pipeline import NewShapeError, OutOfMemoryError, move

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

HABITS = Habits(betas=(0.9, 0.99), decay=0.0, longest=1.0)
SETTINGS = Settings(HABITS, seed=3, jit=False)
ONE, TWO = ["/CPU:1"], ["/CPU:1", "/CPU:2"]


class Line:
    """Two players that each fit a line, and a state that follows the mean of the inputs."""

    def __init__(self, device: str) -> None:
        with tf.device(device):
            self._weights = {
                name: keras.Variable(np.full([2], value), dtype="float32", name=name)
                for name, value in (("near", 0.5), ("far", -0.5))
            }
            self._mean = tf.Variable(0.0, trainable=False)

    @property
    def players(self) -> Mapping[str, Variables]:
        return {name: {"kernel": weight} for name, weight in self._weights.items()}

    @property
    def state(self) -> Variables:
        return {"mean": self._mean}

    def learn(self, features: Tensors, moment: Moment) -> Lesson:
        x_B, y_B, weight_B = features["x"], features["y"], features["weights"]
        losses = {}
        for name, weight in self._weights.items():
            line = tf.convert_to_tensor(weight)
            error_B = tf.square(line[0] * x_B + line[1] - y_B)
            losses[name] = tf.reduce_sum(error_B * weight_B) / tf.reduce_sum(weight_B)
        mean = tf.reduce_sum(x_B * weight_B) / tf.reduce_sum(weight_B)
        return Lesson(losses, {"loss": losses["near"]}, {"x": mean}, {}, tf.reduce_sum(weight_B))

    def absorb(self, means: Tensors, samples: Tensors, moment: Moment) -> None:
        self._mean.assign(means["x"])

    def judge(self, features: Tensors) -> Lesson:
        moment = Moment(tf.zeros([2], tf.int32), tf.zeros([], tf.int64), tf.zeros([]))
        return self.learn(features, moment)


def batch(number: int, rows: int = 4) -> Batch:
    random = np.random.default_rng(number)
    x_B = random.standard_normal(rows).astype(np.float32)
    tensors = {"x": x_B, "y": 3 * x_B + 1, "weights": np.ones(rows, np.float32)}
    return Batch(number, tuple("abcdefgh"[:rows]), tensors)


def hands(whole: Batch, devices: list[str]) -> tuple[Batch, ...]:
    rows = len(whole.clips) // len(devices)
    parts = []
    for place, device in enumerate(devices):
        mine = slice(place * rows, (place + 1) * rows)
        with tf.device(device):
            tensors = {name: tf.constant(t[mine]) for name, t in whole.tensors.items()}
        parts.append(Batch(whole.number, whole.clips[mine], tensors))
    return tuple(parts)


def at(step: int) -> At:
    return At(step, step / 10, 0.05)


def numbers(learner: Learner) -> dict[str, Any]:
    return {name: tf.convert_to_tensor(w).numpy() for name, w in learner.copies[-1].weights.items()}


def taught(devices: list[str], steps: int = 6) -> Learner:
    learner = Learner(Line, devices, SETTINGS)
    for step in range(1, steps + 1):
        learner([hands(batch(step), devices)], at(step))
    return learner


def test_two_devices_learn_what_one_learns_from_the_same_clips() -> None:
    one, two = taught(ONE), taught(TWO)
    for name, weight in numbers(one).items():
        np.testing.assert_allclose(numbers(two)[name], weight, rtol=1e-5)
    assert float(two.state["state"]["mean"]) == pytest.approx(float(one.state["state"]["mean"]))


def test_copies_have_the_same_bits_after_every_step() -> None:
    learner = Learner(Line, TWO, SETTINGS)
    for step in range(1, 4):
        learner([hands(batch(step), TWO)], at(step))
        first, second = (copy.alike for copy in learner.copies)
        for name in first:
            ours, theirs = (tf.convert_to_tensor(each[name]).numpy() for each in (first, second))
            assert ours.tobytes() == theirs.tobytes(), name


def test_each_device_keeps_the_moments_of_its_own_weights_alone() -> None:
    learner = Learner(Line, TWO, SETTINGS)
    owned = [set(copy.optimizer.variables) for copy in learner.copies]
    assert owned[0] & owned[1] == {"updates"}
    assert len(owned[0]) == len(owned[1]) == 3
    places = [copy.optimizer.updates.device[-5:] for copy in learner.copies]
    assert places == ["CPU:1", "CPU:2"]


def test_batches_learned_together_weigh_as_one_batch_of_all_their_clips() -> None:
    apart, together = Learner(Line, ONE, SETTINGS), Learner(Line, ONE, SETTINGS)
    halves = [batch(1), batch(2)]
    tensors = {n: np.concatenate([h.tensors[n] for h in halves]) for n in halves[0].tensors}
    whole = Batch(1, tuple("abcdefgh"), tensors)
    apart([hands(half, ONE) for half in halves], at(1))
    together([hands(whole, ONE)], at(1))
    for name, weight in numbers(together).items():
        np.testing.assert_allclose(numbers(apart)[name], weight, rtol=1e-5)


def test_a_hand_with_fewer_clips_weighs_less() -> None:
    whole = batch(1)
    whole.tensors["weights"][2:] = [1, 0]
    one, two = Learner(Line, ONE, SETTINGS), Learner(Line, TWO, SETTINGS)
    one([hands(whole, ONE)], at(1))
    two([hands(whole, TWO)], at(1))
    for name, weight in numbers(one).items():
        np.testing.assert_allclose(numbers(two)[name], weight, rtol=1e-5)


def test_gradients_that_are_no_numbers_move_nothing() -> None:
    learner = taught(ONE, 2)
    before = {name: tf.convert_to_tensor(v).numpy() for name, v in learner.copies[0].alike.items()}
    broken = batch(3)
    broken.tensors["y"][0] = np.inf
    results = learner([hands(broken, ONE)], at(3))
    assert not np.isfinite(results["gradient_norm"].numpy())
    for name, variable in learner.copies[0].alike.items():
        assert np.array_equal(tf.convert_to_tensor(variable).numpy(), before[name]), name


def test_a_loss_scale_changes_no_update_but_for_rounding() -> None:
    plain = taught(ONE)
    scaled = Learner(Line, ONE, SETTINGS._replace(habits=HABITS._replace(scaled=True)))
    for step in range(1, 7):
        scaled([hands(batch(step), ONE)], at(step))
    for name, weight in numbers(plain).items():
        np.testing.assert_allclose(numbers(scaled)[name], weight, rtol=1e-5)


def test_every_program_is_traced_once_whatever_the_step() -> None:
    learner = taught(TWO)
    assert {program.traces for program in learner.programs} <= {0, 1}


def test_judging_moves_nothing_and_weighs_devices_by_their_clips() -> None:
    learner = taught(TWO)
    before = numbers(learner)
    weight, scalars = learner.judge(hands(batch(9), TWO))
    alone = Learner(Line, ONE, SETTINGS)
    for name, value in move(dict(learner.copies[0].weights), ONE[0]).items():
        alone.copies[0].weights[name].assign(value)
    assert float(weight) == 4
    one = alone.judge(hands(batch(9), ONE))[1]["loss"]
    assert float(scalars["loss"]) == pytest.approx(float(one), rel=1e-5)
    assert all(np.array_equal(numbers(learner)[name], w) for name, w in before.items())


def test_weights_are_shared_out_evenly_and_always_alike() -> None:
    sizes = {"a": 100, "b": 60, "c": 50, "d": 5, "e": 5}
    assert share_out(sizes, 2) == [["a", "d", "e"], ["b", "c"]]
    assert share_out(sizes, 1) == [["a", "b", "c", "d", "e"]]


class Wide(Line):
    """Takes memory by the row: a batch of more than two finds none, as TensorFlow itself says."""

    def learn(self, features: Tensors, moment: Moment) -> Lesson:
        lesson = super().learn(features, moment)
        return lesson if features["x"].shape[0] <= 2 else too_much(lesson, features)


def test_a_batch_without_room_is_an_error_that_names_the_device() -> None:
    learner = Learner(Wide, ONE, SETTINGS)
    with pytest.raises(OutOfMemoryError, match="out of memory on /CPU:1 in program gradients"):
        learner([hands(batch(1), ONE)], at(1))


def test_a_batch_without_room_is_learned_in_pieces_and_teaches_the_same() -> None:
    whole, wide = Learner(Line, ONE, SETTINGS), Learner(Wide, ONE, SETTINGS)
    told: list[int] = []
    wide.shrunk = lambda _error, pieces: told.append(pieces)
    for step in (1, 2):
        whole([hands(batch(step), ONE)], at(step))
        wide([hands(batch(step), ONE)], at(step))
    assert told == [2]  # Once: the second step knows.
    for name, weight in numbers(whole).items():
        np.testing.assert_allclose(numbers(wide)[name], weight, rtol=1e-5)


def test_a_batch_of_one_row_cannot_be_made_smaller() -> None:
    learner = Learner(Greedy, ONE, SETTINGS)
    learner.shrunk = lambda _error, _pieces: None
    with pytest.raises(OutOfMemoryError):
        learner([hands(batch(1, rows=2), ONE)], at(1))


class Greedy(Line):
    """Finds no room for anything."""

    def learn(self, features: Tensors, moment: Moment) -> Lesson:
        lesson = super().learn(features, moment)
        return too_much(lesson, features)


def too_much(lesson: Lesson, features: Tensors) -> Lesson:
    """With a number in it that comes of a million million million bytes."""
    million = tf.cast(2**20 + features["x"][0] * 0, tf.int32)
    bytes_ = tf.zeros(tf.fill([3], million), tf.int8)
    return lesson._replace(weight=lesson.weight + tf.cast(bytes_[0, 0, 0], tf.float32))


def test_a_shape_that_was_not_compiled_before_is_an_error() -> None:
    learner = Learner(Line, ONE, SETTINGS)
    learner([hands(batch(1), ONE)], at(1))
    for program in learner.finders:
        program.close()
    learner([hands(batch(2), ONE)], at(2))
    with pytest.raises(NewShapeError, match=r"was not compiled for .*\(6,\)"):
        learner([hands(batch(3, rows=6), ONE)], at(3))
