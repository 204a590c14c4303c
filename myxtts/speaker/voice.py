"""A voice's vector from reference clips, as XTTS makes it (XTTS.md §6).

Legend: F reference clips, S samples, W width of the vector.
"""

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
