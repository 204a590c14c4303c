"""Batches of clips as they come from the reader: 16-bit, padded, with their lengths.

Legend: B batch, S samples, T time of any kind.
"""

import tensorflow as tf


def to_float(pcm_BS: tf.Tensor) -> tf.Tensor:
    """16-bit sound to float32 from -1 up to 1."""
    return tf.cast(pcm_BS, tf.float32) / 32768.0


def length_mask(lengths_B: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """True at each row's first `lengths_B` of `size` places."""
    return tf.range(size) < tf.cast(lengths_B, tf.int32)[:, None]


def mute_padding(wave_BS: tf.Tensor, lengths_B: tf.Tensor) -> tf.Tensor:
    """Zeros after each clip's end, whatever stood there."""
    # where, not a product: what stood there may be NaN.
    return tf.where(length_mask(lengths_B, size_of(wave_BS, 1)), wave_BS, 0.0)


def size_of(tensor: tf.Tensor, axis: int) -> int | tf.Tensor:
    """The size of an axis: a number where the graph knows it, so that shapes stay static."""
    static = tensor.shape[axis]
    return tf.shape(tensor)[axis] if static is None else int(static)
