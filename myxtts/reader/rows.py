"""Rows of unequal length as one padded array: the only copy on a clip's way into a batch.

Legend: N batches, R rows of the largest batch, B rows of this one, S samples or tokens.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Values = NDArray[np.integer[Any]]


class Texts(NamedTuple):
    """The clips' token ids, one after the other."""

    tokens: Values
    splits: Numbers
    """Where each clip's tokens begin, and the end of the last."""

    @property
    def lengths(self) -> Numbers:
        """Tokens of each clip."""
        return np.diff(self.splits)


class Codes(NamedTuple):
    """A codec's codes of the clips, in each of the K lengths that clips are padded to."""

    values: tf.Tensor
    """int16, in no order."""
    begins_KC: Numbers
    """Where each clip's codes begin; -1 where nobody has made them."""
    lengths_KC: Numbers


class Slices(NamedTuple):
    """What `pad_rows` puts into each row, for many batches."""

    starts: Numbers
    """[N, R], as all three."""
    lengths: Numbers
    """Values to take from each start."""
    zeros: Numbers
    """Where the row's padding begins: at its width for a row that the batch does not have."""


def slices(
    clips_NR: Values, wide_N: Values, rows_N: Values, begins: Values, lengths: Values
) -> Slices:
    """The slices of clips laid out one behind the other; no clip (-1) has no values."""
    is_clip = clips_NR >= 0
    lengths_NR = np.where(is_clip, lengths[clips_NR], 0).astype(np.int64)
    starts_NR = np.where(is_clip, begins[clips_NR], 0).astype(np.int64)
    in_batch = np.arange(clips_NR.shape[1]) < rows_N[:, None]
    return Slices(starts_NR, lengths_NR, np.where(in_batch, lengths_NR, wide_N[:, None]))


def pad_rows(values: tf.Tensor, taken: Slices, width: tf.Tensor) -> tf.Tensor:
    """The rows of one batch, zeros behind each, in the graph of a data set."""
    # Unrolled: a loop's steps cost as much as their copies, and a branch for each shape halves
    # the rate. A slice that begins and ends on 64 bytes is no copy, so concat's is the only one.
    zeros = tf.zeros([width], values.dtype)
    pieces = []
    for start, length, zero in zip(*(tf.unstack(part) for part in taken), strict=True):
        pieces += [tf.slice(values, [start], [length]), zeros[zero:]]
    return tf.reshape(tf.concat(pieces, 0), [-1, width])
