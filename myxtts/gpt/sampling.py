"""Which code comes next: XTTS's rules, as the reference applies them (XTTS.md §6).

A row's random numbers are a function of the seed, the row's number and the step, so that a row
says the same alone, in a batch of others, and streamed.

Legend: B batch, N steps, V vocabulary, R ranks, the likeliest first.
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from myxtts.errors import UserError

PLACEHOLDER = 1
"""The id that stands for the voice and the text in the reference's list of what was said."""
ALGORITHM = "philox"  # Named, because "auto_select" takes another one on other devices.
REMOVED = -1e30
FEW = 64
"""Up to this top_k only so many codes are put in order, which takes a fraction of the time."""


class SamplingError(UserError):
    """A setting that no code could be drawn with."""


@dataclass(frozen=True)
class Sampling:
    """How a code is drawn; the defaults are XTTS-v2's."""

    temperature: float = 0.75
    """Below 1 the likely codes become likelier; 0 takes the likeliest."""
    top_k: int = 50
    """How many of the likeliest codes may be drawn; 0 means all."""
    top_p: float = 0.85
    """The likeliest codes that have this much of the probability together may be drawn."""
    repetition_penalty: float = 5.0
    """What the logits of codes already said are divided by (multiplied, where below 0)."""
    forbid_start: bool = False
    """Never draws the start code, which the vocoder never heard; the reference may draw it."""

    def __post_init__(self) -> None:
        checks = (
            ("temperature", self.temperature >= 0, "0 or more, such as 0.75"),
            ("top_k", self.top_k >= 0, "a number of codes such as 50, or 0 for all"),
            ("top_p", 0 < self.top_p <= 1, "a share above 0 and up to 1, such as 0.85"),
            ("repetition_penalty", self.repetition_penalty > 0, "a number above 0, such as 5"),
        )
        for name, fits, wanted in checks:
            if not fits:
                raise SamplingError(f"{name} is {getattr(self, name)}", f"write {wanted}")


GREEDY = Sampling(temperature=0.0, repetition_penalty=1.0)
"""The likeliest code each time."""


class Rules(NamedTuple):
    """The settings as tensors: other values are no other program."""

    temperature: tf.Tensor
    top_k: tf.Tensor
    top_p: tf.Tensor
    penalty: tf.Tensor
    forbid_start: tf.Tensor


def rules(sampling: Sampling) -> Rules:
    """On the device of the scope it is called in."""
    return Rules(
        tf.constant(sampling.temperature, tf.float32),
        tf.constant(sampling.top_k, tf.int32),
        tf.constant(sampling.top_p, tf.float32),
        tf.constant(sampling.repetition_penalty, tf.float32),
        tf.constant(sampling.forbid_start),
    )


def draw(
    logits_BV: tf.Tensor, said_BV: tf.Tensor, chance_B: tf.Tensor, rule: Rules, start: int
) -> tf.Tensor:
    """(B,) int32; `chance_B` is a random number from 0 to 1 for each row."""
    logits_BV = penalised(logits_BV, said_BV, rule.penalty)
    is_start_V = tf.range(logits_BV.shape[1]) == start
    logits_BV = tf.where(tf.logical_and(rule.forbid_start, is_start_V), REMOVED, logits_BV)
    few = tf.logical_and(rule.top_k > 0, rule.top_k <= FEW)
    codes = logits_BV.shape[1]
    return tf.cond(
        rule.temperature > 0,
        lambda: tf.cond(
            few,
            lambda: _drawn(*ranked(logits_BV, rule, min(FEW, codes)), chance_B),
            lambda: _drawn(*ranked(logits_BV, rule, codes), chance_B),
        ),
        lambda: tf.argmax(logits_BV, 1, tf.int32),
    )


def penalised(logits_BV: tf.Tensor, said_BV: tf.Tensor, penalty: tf.Tensor) -> tf.Tensor:
    """Codes that were said become less likely, whatever their logit's sign."""
    less_BV = tf.where(logits_BV > 0, logits_BV / penalty, logits_BV * penalty)
    return tf.where(said_BV, less_BV, logits_BV)


def ranked(logits_BV: tf.Tensor, rule: Rules, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """(B, R) twice: the probabilities of the likeliest codes, 0 where not to be drawn; the codes.

    `count` is R, and no less than top_k.
    """
    falling_BR, code_BR = tf.math.top_k(logits_BV / rule.temperature, count)
    kept = tf.where(rule.top_k > 0, tf.minimum(rule.top_k, count), count)
    allowed_R = tf.range(count) < kept
    mass_BR = tf.nn.softmax(tf.where(allowed_R, falling_BR, REMOVED))
    likelier_BR = tf.cumsum(mass_BR, 1, exclusive=True)
    # At top_p 1 rounding must not drop the last ones; and the first always stays.
    inside_BR = tf.logical_or(likelier_BR < rule.top_p, rule.top_p >= 1)
    mass_BR = tf.where(tf.logical_and(inside_BR, allowed_R), mass_BR, 0.0)
    return mass_BR / tf.reduce_sum(mass_BR, 1, keepdims=True), code_BR


def _drawn(mass_BR: tf.Tensor, code_BR: tf.Tensor, chance_B: tf.Tensor) -> tf.Tensor:
    """The first code whose own and likelier codes' mass is above the chance."""
    until_BR = tf.cumsum(mass_BR, 1)
    # Of the sum itself, which rounding may leave a little below 1.
    aim_B1 = chance_B[:, None] * until_BR[:, -1:]
    above_BR = tf.logical_and(until_BR > aim_B1, mass_BR > 0)
    place_B = tf.argmax(tf.cast(above_BR, tf.int32), 1, tf.int32)
    return tf.gather(code_BR, place_B, batch_dims=1)


def chances(seed: tf.Tensor, row_B: tf.Tensor, steps: int) -> tf.Tensor:
    """(B, N): every step's random number of each row, from 0 up to 1, of 24 bits."""
    rows = [
        tf.random.stateless_uniform(
            [steps], tf.stack([seed, row]), None, None, tf.int32, alg=ALGORITHM
        )
        for row in tf.unstack(row_B)
    ]
    # From whole bits: TensorFlow's own floats take other bits than XLA's.
    return (tf.cast(tf.stack(rows) // 2**8, tf.float32) + 2.0**23) * 2.0**-24
