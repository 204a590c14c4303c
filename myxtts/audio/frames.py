"""Cuts sound into overlapping frames and mirrors its ends.

Legend: B batch, S samples, T frames, W samples of a frame, P samples of the mirrored edge.
"""

from math import gcd

import numpy as np
import tensorflow as tf

from myxtts.audio.waves import mute_padding, size_of


def frame(wave_BS: tf.Tensor, length: int, hop: int) -> tf.Tensor:
    """Every whole frame (B, T, W) of `length` samples, `hop` apart."""
    # Copies whole cells instead of samples: under XLA a sixth faster than concatenating slices,
    # if the index is a constant, so it is one wherever it can be.
    # A loop over rows stays in the CPU's cache and is a sixth faster still, but would make a
    # GPU wait. benchmarks/mel.py measures the whole.
    cell = gcd(length, hop)
    cells, stride = length // cell, hop // cell
    batch, samples = size_of(wave_BS, 0), size_of(wave_BS, 1)
    frames = (samples - length) // hop + 1
    used = ((frames - 1) * stride + cells) * cell
    wave_BNc = tf.reshape(wave_BS[:, :used], [batch, -1, cell])
    firsts_T = np.arange(frames) if isinstance(frames, int) else tf.range(frames)
    cells_TN = firsts_T[:, None] * stride + np.arange(cells)
    return tf.reshape(tf.gather(wave_BNc, cells_TN, axis=1), [batch, frames, length])


def mirror_ends(wave_BS: tf.Tensor, edge: int, lengths_B: tf.Tensor | None = None) -> tf.Tensor:
    """Adds `edge` mirrored samples before each clip and after it.

    Without lengths every row ends where the tensor does. With them each clip is mirrored at its
    own end, and zeros fill the row: it begins as it would if the clip stood alone, whatever the
    padding held. A clip shorter than the edge is mirrored to and fro.
    """
    if lengths_B is None:
        samples = wave_BS.shape[1]
        if samples is not None and samples > edge:
            return tf.pad(wave_BS, [[0, 0], [edge, edge]], mode="REFLECT")
        lengths_B = tf.repeat(size_of(wave_BS, 1), size_of(wave_BS, 0))
    lengths_B = tf.cast(lengths_B, tf.int32)
    muted_BS = mute_padding(wave_BS, lengths_B)
    ends_B1 = lengths_B[:, None]
    head_BP = _mirrored(muted_BS, tf.range(edge, 0, -1) + tf.zeros_like(ends_B1), ends_B1)
    after_BP = ends_B1 + tf.range(edge)
    row_BS = tf.concat([head_BP, tf.pad(muted_BS, [[0, 0], [0, edge]])], 1)
    tail_BP = _mirrored(muted_BS, after_BP, ends_B1)
    rows_BP = tf.range(size_of(wave_BS, 0))[:, None] + tf.zeros_like(after_BP)
    places_BP2 = tf.stack([rows_BP, edge + after_BP], -1)
    return tf.tensor_scatter_nd_update(row_BS, places_BP2, tail_BP)


def _mirrored(wave_BS: tf.Tensor, places_BP: tf.Tensor, ends_B1: tf.Tensor) -> tf.Tensor:
    """The samples at places that may lie beyond a clip's end, as mirrors there show them."""
    period_B1 = tf.maximum(2 * (ends_B1 - 1), 1)
    folded_BP = places_BP % period_B1
    return tf.gather(wave_BS, tf.minimum(folded_BP, period_B1 - folded_BP), batch_dims=1)
