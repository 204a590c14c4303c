"""The levels of a data set's mels, which a codec from nothing is fit to.

Legend: T frames, M mels.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.audio import dvae_mel, frames_for_samples, length_mask, to_float
from myxtts.batch import Batch, Tensors
from myxtts.pipeline import Program

MELS = 80
Levels = NDArray[np.float32]


class MelLevels(NamedTuple):
    """What mels are divided by, and what their mean is after that."""

    spread_M: Levels
    mean_M: Levels


def measure_levels(batches: Iterable[Batch], device: str) -> MelLevels:
    """Each band's spread and mean over every frame of the batches."""
    program = Program(_sums, device, name="levels")
    sums = np.zeros([2, MELS])
    frames = 0.0
    for batch in batches:
        found, count = program(batch.tensors)
        sums += found.numpy()
        frames += float(count.numpy())
    mean_M = sums[0] / frames
    spread_M = np.sqrt(np.maximum(sums[1] / frames - mean_M**2, 1e-4))
    return MelLevels(spread_M.astype(np.float32), (mean_M / spread_M).astype(np.float32))


def _sums(tensors: Tensors) -> tuple[tf.Tensor, tf.Tensor]:
    """Of the mels and of their squares, over frames that are sound."""
    wave_BS, lengths_B = to_float(tensors["pcm"]), tensors["samples"]
    mel_BTM = dvae_mel(wave_BS, tf.ones([MELS]), lengths_B)
    frames_B = tf.cast(frames_for_samples(lengths_B), tf.int32)
    frames_B *= tf.cast(tensors["weights"] > 0, tf.int32)
    heard_BT = tf.cast(length_mask(frames_B, mel_BTM.shape[1]), tf.float32)
    mel_BTM = tf.cast(mel_BTM, tf.float64) * tf.cast(heard_BT[..., None], tf.float64)
    sums = tf.stack([tf.reduce_sum(mel_BTM, [0, 1]), tf.reduce_sum(tf.square(mel_BTM), [0, 1])])
    return sums, tf.reduce_sum(heard_BT)
