"""A voice's vector from reference clips, as XTTS makes it (XTTS.md §6).

A model that was trained from nothing has no speaker encoder, which is only ever imported. There a
stand-in takes its place, and whoever speaks with such a model must take the same: `clip_vectors`.

Legend: F reference clips, S samples, W width of the vector, P vectors of a voice as the GPT hears
it, D their width.
"""

import numpy as np
import tensorflow as tf

from myxtts.audio import (
    CODEC_HZ,
    SPEAKER_HZ,
    mute_padding,
    resample,
    resampled_length,
    size_of,
)
from myxtts.speaker.network import Speaker

REFERENCE_SECONDS = 30
"""Of each clip, from its beginning; what comes after is not heard."""
REFERENCE_PEAK = 0.75
"""Of a clip that is scaled."""
STAND_IN_SEED = 0
"""Of the signs that are part of every model without a speaker encoder: never another."""


def clip_vectors(
    speaker: Speaker | None,
    wave_FS: tf.Tensor,
    lengths_F: tf.Tensor,
    voice_FPD: tf.Tensor,
    width: int,
) -> tf.Tensor:
    """float32 (F, W): what the vocoder is told of each clip, at 22.05 kHz; each of unit length.

    A voice made of several clips is the mean of their vectors, in both cases.
    """
    if speaker is None:
        return stand_in(voice_FPD, width)
    return speaker(*reference_sound(wave_FS, lengths_F))


def stand_in(voice_FPD: tf.Tensor, width: int) -> tf.Tensor:
    """float32 (F, W) of unit length: nothing of it is learned but what the GPT hears of a voice.

    The mean of the voice's vectors, its numbers added up for each number of the result with signs
    that are the same everywhere: voices that are alike stay so, and unlike ones too.
    """
    mean_FD = tf.reduce_mean(tf.cast(voice_FPD, tf.float32), 1)
    numbers = int(mean_FD.shape[-1])
    # Raw numbers of a named generator: NumPy may change how it draws, these it may not.
    raw_DW = np.random.PCG64(STAND_IN_SEED).random_raw(numbers * width).reshape(numbers, width)
    signs_DW = 1 - 2 * (raw_DW >> np.uint64(63)).astype(np.float32)
    return tf.math.l2_normalize(tf.matmul(mean_FD, tf.constant(signs_DW)), 1)


def voice_vector(
    speaker: Speaker,
    wave_FS: tf.Tensor,
    lengths_F: tf.Tensor | None = None,
    *,
    seconds: float = REFERENCE_SECONDS,
    peak: float | None = None,
) -> tf.Tensor:
    """float32 (1, W): the mean over the clips, at 22.05 kHz, of their vectors of unit length.

    A mean of unlike vectors is shorter than they are: XTTS leaves it so, and its vocoder has
    learned to hear it so. `peak` scales every clip to that peak first.
    """
    sound_FS, lengths_F = reference_sound(wave_FS, lengths_F, seconds=seconds, peak=peak)
    return tf.reduce_mean(speaker(sound_FS, lengths_F), 0, keepdims=True)


def reference_sound(
    wave_FS: tf.Tensor,
    lengths_F: tf.Tensor | None = None,
    *,
    seconds: float = REFERENCE_SECONDS,
    peak: float | None = None,
) -> tuple[tf.Tensor, tf.Tensor | None]:
    """What the speaker encoder hears of clips at 22.05 kHz: their beginnings, at 16 kHz."""
    most = round(seconds * CODEC_HZ)
    wave_FS = wave_FS[:, :most]
    if lengths_F is not None:
        lengths_F = tf.minimum(tf.cast(lengths_F, tf.int32), size_of(wave_FS, 1))
        wave_FS = mute_padding(wave_FS, lengths_F)
    if peak is not None:
        loudest_F1 = tf.reduce_max(tf.abs(wave_FS), 1, keepdims=True)
        wave_FS = tf.math.divide_no_nan(wave_FS, loudest_F1) * peak  # Silence stays silence.
    sound_FS = resample(wave_FS, CODEC_HZ, SPEAKER_HZ, lengths_F)
    if lengths_F is None:
        return sound_FS, None
    return sound_FS, resampled_length(lengths_F, CODEC_HZ, SPEAKER_HZ)
