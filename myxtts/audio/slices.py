"""The part of a clip that conditions the GPT while it learns that same clip (XTTS.md §4).

Legend: B batch, S samples, C samples of the slice with its padding.
"""

from typing import NamedTuple

import tensorflow as tf

from myxtts.audio.keys import Draw, below, uniform
from myxtts.audio.waves import length_mask, size_of

SHORTEST = 66150
"""3 s at 22.05 kHz."""
LONGEST = 132300
"""6 s; every slice is filled up with zeros to this."""
MEAN = (SHORTEST + LONGEST) // 2


class Slices(NamedTuple):
    """A piece of each clip, and where it was."""

    wave: tf.Tensor
    """(B, C), zero after each slice's end."""
    starts: tf.Tensor
    """(B,), each slice's first sample in its clip."""
    ends: tf.Tensor
    """(B,), the sample after its last."""


def random_slices(wave_BS: tf.Tensor, lengths_B: tf.Tensor, key: tf.Tensor) -> Slices:
    """3 to 6 s from anywhere in each clip; half of a clip that is shorter than was drawn."""
    clips_B = tf.cast(lengths_B, tf.int32)
    rows = [size_of(wave_BS, 0)]
    drawn_B = SHORTEST + below(uniform(key, Draw.SLICE_LENGTH, rows), LONGEST - SHORTEST + 1)
    lengths_B = _half_if_short(drawn_B, clips_B)
    starts_B = below(uniform(key, Draw.SLICE_START, rows), clips_B - lengths_B + 1)
    return _cut(wave_BS, starts_B, starts_B + lengths_B)


def fixed_slices(wave_BS: tf.Tensor, lengths_B: tf.Tensor) -> Slices:
    """For evaluation: the first 4.5 s of each clip, half of a clip that is shorter."""
    clips_B = tf.cast(lengths_B, tf.int32)
    ends_B = _half_if_short(tf.fill(tf.shape(clips_B), MEAN), clips_B)
    return _cut(wave_BS, tf.zeros_like(ends_B), ends_B)


def _half_if_short(wanted_B: tf.Tensor, clips_B: tf.Tensor) -> tf.Tensor:
    return tf.where(clips_B < wanted_B, clips_B // 2, wanted_B)


def _cut(wave_BS: tf.Tensor, starts_B: tf.Tensor, ends_B: tf.Tensor) -> Slices:
    places_BC = starts_B[:, None] + tf.range(LONGEST)
    # Never beyond the tensor: there a gather gives zeros on a GPU and an error on a CPU.
    heard_BC = tf.gather(wave_BS, tf.minimum(places_BC, size_of(wave_BS, 1) - 1), batch_dims=1)
    inside_BC = length_mask(ends_B - starts_B, LONGEST)
    return Slices(tf.where(inside_BC, heard_BC, 0.0), starts_B, ends_B)
