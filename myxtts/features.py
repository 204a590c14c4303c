"""What the data device makes of a batch of clips: mels and the slice that conditions.

Legend: B batch, S samples, T frames, M mels, C samples of a slice.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.audio import (
    augment,
    conditioning_mel,
    dvae_mel,
    fixed_slices,
    frames_for_samples,
    random_slices,
    step_key,
    to_float,
)
from myxtts.batch import Tensors
from myxtts.config import DataConfig

MELS = 80

Codec = Callable[[tf.Tensor], tf.Tensor]
"""Mels (B, T, M) to codes (B, T / 4)."""
Extract = Callable[[Tensors, tf.Tensor], Tensors]


def feature_extractor(
    data: DataConfig,
    seed: int,
    mel_stats_M: NDArray[np.float32] | None = None,
    codec: Codec | None = None,
    *,
    judging: bool = False,
    sound: bool = False,
) -> Extract:
    """The body of the data device's program: the same batch number gives the same bits.

    Without `mel_stats_M` the mels are not divided. What the reader gave is handed on, except
    the samples themselves; `sound` has those that were heard, float32 and changed as the clips
    were. Clips that judge are not changed, and their slices are always the same.
    """

    def extract(tensors: Tensors, number: tf.Tensor) -> Tensors:
        key = step_key(seed, number)
        stats_M = tf.ones([MELS]) if mel_stats_M is None else tf.constant(mel_stats_M)
        wave_BS, lengths_B = to_float(tensors["pcm"]), tensors["samples"]
        if judging:
            slices = fixed_slices(wave_BS, lengths_B)
        else:
            wave_BS, lengths_B = augment(wave_BS, lengths_B, key, data.augment)
            slices = random_slices(wave_BS, lengths_B, key)
        mel_BTM = dvae_mel(wave_BS, stats_M, lengths_B)
        heard_B = slices.ends - slices.starts
        features = {name: value for name, value in tensors.items() if name != "pcm"}
        features |= {
            "samples": lengths_B,
            "mel": mel_BTM,
            "frames": frames_for_samples(lengths_B),
            "conditioning": conditioning_mel(slices.wave, stats_M, heard_B),
            "conditioning_from": slices.starts,
            "conditioning_to": slices.ends,
        }
        features |= {"codes": codec(mel_BTM)} if codec else {}
        features |= {"sound": wave_BS} if sound else {}
        return tf.nest.map_structure(_wide, features)

    return extract


def _wide(tensor: tf.Tensor) -> tf.Tensor:
    """No int32: a program looks for its int32 arguments in host memory, whatever its device."""
    return tf.cast(tensor, tf.int64) if tensor.dtype == tf.int32 else tensor
