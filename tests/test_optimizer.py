"""AdamW, the loss scale and the schedule, against Keras and against their own rules."""

from itertools import pairwise

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.optimizer import AdamW, Habits, LossScale, cut, squared_length
from myxtts.pipeline import Program
from myxtts.schedule import Schedule

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

DEVICE = "/CPU:1"
HABITS = Habits(betas=(0.9, 0.96), decay=0.1, longest=0.0)
SHAPES = {"block/kernel": (3, 4), "block/bias": (4,), "table/table": (5, 3)}


def weights(seed: int = 0) -> dict[str, keras.Variable]:
    random = np.random.default_rng(seed)
    with tf.device(DEVICE):
        return {
            name: keras.Variable(random.standard_normal(shape), dtype="float32")
            for name, shape in SHAPES.items()
        }


def gradients(step: int) -> dict[str, tf.Tensor]:
    random = np.random.default_rng(100 + step)
    with tf.device(DEVICE):
        return {
            name: tf.constant(random.standard_normal(shape), tf.float32)
            for name, shape in SHAPES.items()
        }


def updater(optimizer: AdamW) -> Program:
    def update(found: dict[str, tf.Tensor], rate: tf.Tensor) -> None:
        optimizer.update(found, rate, dict.fromkeys(found, tf.ones([])))

    return Program(update, DEVICE)


def rate(value: float) -> tf.Tensor:
    with tf.device(DEVICE):
        return tf.constant(value)


def test_it_moves_weights_as_kerass_adamw_does_and_decays_matrices_alone() -> None:
    ours, theirs = weights(), weights()
    with tf.device(DEVICE):
        optimizer = AdamW(ours, HABITS)
        peer = keras.optimizers.AdamW(0.01, weight_decay=0.1, beta_1=0.9, beta_2=0.96, epsilon=1e-8)
        peer.exclude_from_weight_decay([theirs["block/bias"], theirs["table/table"]])
        peer.build(list(theirs.values()))
    update = updater(optimizer)
    for step in range(5):
        update(gradients(step), rate(0.01))
        with tf.device(DEVICE):
            peer.apply(list(gradients(step).values()), list(theirs.values()))
    for name, weight in ours.items():
        np.testing.assert_allclose(weight.numpy(), theirs[name].numpy(), rtol=2e-5, atol=1e-6)


def test_the_average_follows_the_weights_from_where_they_began() -> None:
    ours = weights()
    with tf.device(DEVICE):
        optimizer = AdamW(ours, HABITS._replace(average=0.75))
    begun = {name: weight.numpy() for name, weight in ours.items()}
    updater(optimizer)(gradients(0), rate(0.1))
    for name, average in optimizer.average.items():
        wanted = 0.75 * begun[name] + 0.25 * ours[name].numpy()
        np.testing.assert_allclose(average.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_long_gradients_are_cut_to_the_allowed_length_and_short_ones_left() -> None:
    found = list(gradients(1).values())
    length = tf.sqrt(squared_length(found))
    whole = np.concatenate([g.numpy().ravel() for g in found])
    assert float(length) == pytest.approx(np.linalg.norm(whole), rel=1e-6)
    assert float(length * cut(length, 1.0)) == pytest.approx(1.0, rel=1e-6)
    assert float(cut(length, 1e9)) == float(cut(length, 0.0)) == 1.0


def test_an_overflow_halves_the_loss_scale_and_a_long_calm_doubles_it() -> None:
    with tf.device(DEVICE):
        scale = LossScale(on=True)
    begun = float(scale.value)
    heed = Program(scale.heed, DEVICE)
    with tf.device(DEVICE):
        yes, no = tf.constant(True), tf.constant(False)
    heed(no)
    assert float(scale.value) == begun / 2
    scale.healthy.assign(998)
    heed(yes)
    heed(yes)
    assert float(scale.value) == begun
    assert int(scale.healthy) == 0


def test_the_rate_rises_in_a_line_and_falls_in_a_cosine_to_its_share() -> None:
    schedule = Schedule(highest=1.0, steps=100, warm_up=10, shape="cosine", lowest_share=0.1)
    rates = [schedule.rate(step) for step in range(1, 101)]
    assert rates[:10] == pytest.approx([n / 10 for n in range(1, 11)])
    assert all(later < earlier for earlier, later in pairwise(rates[9:]))
    assert rates[-1] == pytest.approx(0.1)
    assert schedule.rate(500) == rates[-1]


def test_a_longer_run_is_planned_anew() -> None:
    short = Schedule(1.0, 100, 10, "cosine", 0.1)
    assert short._replace(steps=200).rate(100) > 5 * short.rate(100)
    assert "to 0.1 at step 100" in short.described()


def test_steps_halve_the_rate_three_times() -> None:
    schedule = Schedule(1.0, 1000, 0, "steps", 0.0)
    assert sorted({schedule.rate(step) for step in range(1, 1001)}) == [0.125, 0.25, 0.5, 1.0]
