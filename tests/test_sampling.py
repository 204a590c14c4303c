"""Which code is drawn, against a plain statement of XTTS's rules in NumPy."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.gpt.sampling import (
    FEW,
    GREEDY,
    Sampling,
    SamplingError,
    chances,
    draw,
    penalised,
    ranked,
    rules,
)
from myxtts.pipeline import Program

DEVICE = "/CPU:1"
CODES, START = 66, 64
COMPILERS = pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])

Array = NDArray[np.float64]


def random_logits(rows: int = 8) -> Array:
    return np.random.default_rng(3).normal(scale=3, size=(rows, CODES))


def by_the_rules(logits_V: Array, sampling: Sampling) -> Array:
    logits_V = logits_V / sampling.temperature
    falling = np.argsort(-logits_V)
    if sampling.top_k:
        falling = falling[: sampling.top_k]
    mass = np.exp(logits_V[falling] - logits_V.max())
    until = np.cumsum(mass / mass.sum())
    count = int(np.argmax(until >= sampling.top_p)) + 1 if sampling.top_p < 1 else len(falling)
    kept = np.zeros(len(logits_V))
    kept[falling[:count]] = mass[:count] / mass[:count].sum()
    return kept


def ours(logits_BV: Array, sampling: Sampling, jit: bool = False) -> Array:
    with tf.device(DEVICE):
        given = tf.constant(logits_BV, tf.float32), rules(sampling)
    count = FEW if 0 < sampling.top_k <= FEW else CODES
    program = Program(partial(ranked, count=count), DEVICE, jit=jit, name="ranked")
    mass_BR, code_BR = program(*given)
    mass_BV = np.zeros(logits_BV.shape)
    np.put_along_axis(mass_BV, code_BR.numpy(), mass_BR.numpy(), 1)
    return mass_BV


@COMPILERS
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(top_k=0, top_p=1.0),
        Sampling(top_k=5, top_p=1.0),
        Sampling(top_k=0, top_p=0.5, temperature=1.3),
        Sampling(top_p=1e-6),
        Sampling(top_k=1000),
    ],
    ids=["xtts", "all", "five", "half", "one", "too many"],
)
def test_probabilities_are_those_of_the_rules(sampling: Sampling, jit: bool) -> None:
    logits_BV = random_logits()
    wanted = np.array([by_the_rules(row, sampling) for row in logits_BV])
    found = ours(logits_BV, sampling, jit)
    assert np.array_equal(found > 0, wanted > 0)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_top_k_keeps_k_codes() -> None:
    assert ((ours(random_logits(), Sampling(top_k=7, top_p=1.0)) > 0).sum(1) == 7).all()


def test_top_p_keeps_the_smallest_set_with_that_mass_and_at_least_one_code() -> None:
    logits_BV = random_logits()
    whole = ours(logits_BV, Sampling(top_k=0, top_p=1.0))
    kept = ours(logits_BV, Sampling(top_k=0, top_p=0.85)) > 0
    mass = (whole * kept).sum(1)
    least = np.where(kept, whole, 2).min(1)
    assert (mass >= 0.85).all()
    assert (mass - least < 0.85).all()
    assert ((ours(logits_BV, Sampling(top_p=1e-9)) > 0).sum(1) == 1).all()


def draws(
    logits_BV: Array, chance_B: Array, sampling: Sampling, said: tuple[int, ...] = ()
) -> Array:
    said_V = np.isin(np.arange(CODES), said)
    with tf.device(DEVICE):
        given = (
            tf.constant(logits_BV, tf.float32),
            tf.constant(np.tile(said_V, (len(logits_BV), 1))),
            tf.constant(chance_B, tf.float32),
            rules(sampling),
        )
    program = Program(partial(draw, start=START), DEVICE, name="draw")
    return np.asarray(program(*given))


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(top_k=0)], ids=["few", "all"])
def test_draws_follow_the_probabilities(sampling: Sampling) -> None:
    rows = 4000
    logits_V = random_logits(1)
    evenly = (np.arange(rows) + 0.5) / rows
    counts = np.bincount(draws(np.repeat(logits_V, rows, 0), evenly, sampling), minlength=CODES)
    assert np.abs(counts - rows * by_the_rules(logits_V[0], sampling)).max() <= 1.01


@pytest.mark.parametrize("chance", [0.0, 0.5, 1 - 2.0**-24])
def test_little_temperature_is_greedy(chance: float) -> None:
    logits_BV = random_logits()
    likeliest = logits_BV.argmax(1)
    cold = Sampling(temperature=1e-4, repetition_penalty=1.0)
    for sampling in (cold, GREEDY):
        assert np.array_equal(draws(logits_BV, np.full(8, chance), sampling), likeliest)


def test_a_code_that_was_said_becomes_less_likely_whatever_its_sign() -> None:
    logits_BV = tf.constant([[2.0, -2.0, 2.0, -2.0]])
    said_BV = tf.constant([[True, True, False, False]])
    less = penalised(logits_BV, said_BV, tf.constant(5.0)).numpy()
    assert less[0].tolist() == pytest.approx([0.4, -10, 2, -2])


def test_the_start_code_is_drawn_unless_it_is_forbidden() -> None:
    logits_BV = random_logits()
    logits_BV[:, START] = 50
    evenly = np.linspace(0, 0.99, 8)
    assert (draws(logits_BV, evenly, Sampling()) == START).all()
    assert not (draws(logits_BV, evenly, Sampling(forbid_start=True)) == START).any()


@COMPILERS
def test_a_rows_random_numbers_are_its_own(jit: bool) -> None:
    program = Program(lambda seed, rows: chances(seed, rows, 50), DEVICE, jit=jit)

    def drawn(seed: int, *rows: int) -> Array:
        with tf.device(DEVICE):
            return np.asarray(program(tf.constant(seed), tf.constant(rows)))

    alone, together = drawn(5, 2), drawn(5, 0, 1, 2)
    assert np.array_equal(alone[0], together[2])
    assert len({*together.ravel(), *drawn(6, 0, 1, 2).ravel()}) == 300
    assert together.min() >= 0
    assert together.max() < 1
    # Pinned, so that graph mode and XLA, and every later version, draw the same.
    assert (alone[0, :2] * 2**24).astype(int).tolist() == [15928114, 11729078]


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"repetition_penalty": 0.0}]
)
def test_a_setting_out_of_range_is_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(SamplingError, match=next(iter(wrong))):
        Sampling(**wrong)  # type: ignore[arg-type]
