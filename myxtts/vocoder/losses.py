"""What the vocoder and its discriminators are each told to make small (HiFi-GAN's losses).

All are means over each row, then over the rows by their weights, in float32: a row of weight 0
counts for nothing. Legend: B batch, N samples at 24 kHz, P lanes, T time, C channels, S width of
the speaker vector.
"""

from collections.abc import Callable, Sequence

import tensorflow as tf

from myxtts.audio import SPEAKER_HZ, VOCODER_HZ, resample, vocoder_mel
from myxtts.vocoder.discriminators import Opinion

FEATURE_WEIGHT = 2.0
MEL_WEIGHT = 45.0
"""Of the log amplitude; the adversarial loss has weight 1."""
SPEAKER_WEIGHT = 9.0
"""As in YourTTS, where the same loss stands beside the same mel loss."""

Hear = Callable[[tf.Tensor], tf.Tensor]
"""Sound at 16 kHz to a speaker vector each."""


def real_loss(real: Sequence[Opinion], weights_B: tf.Tensor) -> tf.Tensor:
    """The discriminators': how far from 1 they score real sound, squared; summed over all."""
    return tf.add_n([_score_loss(each, 1.0, weights_B) for each in real])


def made_loss(made: Sequence[Opinion], weights_B: tf.Tensor) -> tf.Tensor:
    """The discriminators': how far from 0 they score made sound, squared; summed over all."""
    return tf.add_n([_score_loss(each, 0.0, weights_B) for each in made])


def adversarial_loss(made: Sequence[Opinion], weights_B: tf.Tensor) -> tf.Tensor:
    """The generator's: how far from 1 they score made sound, squared; summed over all."""
    return real_loss(made, weights_B)


def feature_loss(
    real: Sequence[Opinion], made: Sequence[Opinion], weights_B: tf.Tensor
) -> tf.Tensor:
    """The generator's: what the discriminators notice differently; summed over all layers."""
    pairs = [
        (tf.stop_gradient(wanted), found)
        for one, other in zip(real, made, strict=True)
        for wanted, found in zip(one.features, other.features, strict=True)
    ]
    return tf.add_n([weighted_mean(_distance(*pair), weights_B) for pair in pairs])


def mel_loss(made_BN: tf.Tensor, real_BN: tf.Tensor, weights_B: tf.Tensor) -> tf.Tensor:
    """The generator's: mean distance of the logarithms of mel amplitudes."""
    return weighted_mean(_distance(vocoder_mel(real_BN), vocoder_mel(made_BN)), weights_B)


def speaker_loss(
    hear: Hear, made_BN: tf.Tensor, real_BN: tf.Tensor, weights_B: tf.Tensor
) -> tf.Tensor:
    """The generator's: 1 - the cosine between the voices of the made and the real sound."""
    made_BS, real_BS = (_voice(hear, sound_BN) for sound_BN in (made_BN, real_BN))
    cosine_B = tf.reduce_sum(made_BS * tf.stop_gradient(real_BS), 1)
    return weighted_mean(1 - cosine_B, weights_B)


def weighted_mean(value_B: tf.Tensor, weights_B: tf.Tensor) -> tf.Tensor:
    """0 where nothing has weight; what a row of weight 0 holds is not even read."""
    heard_B = tf.where(weights_B > 0, value_B * weights_B, 0.0)
    return tf.math.divide_no_nan(tf.reduce_sum(heard_B), tf.reduce_sum(weights_B))


def _score_loss(opinion: Opinion, wanted: float, weights_B: tf.Tensor) -> tf.Tensor:
    score_BPT1 = tf.cast(opinion.score_BPT1, tf.float32)
    return weighted_mean(_mean_of_rows(tf.square(score_BPT1 - wanted)), weights_B)


def _distance(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """(B,): mean of the absolute differences."""
    return _mean_of_rows(tf.abs(tf.cast(one, tf.float32) - tf.cast(other, tf.float32)))


def _mean_of_rows(x: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(x, list(range(1, len(x.shape))))


def _voice(hear: Hear, sound_BN: tf.Tensor) -> tf.Tensor:
    heard_BS = hear(resample(sound_BN, VOCODER_HZ, SPEAKER_HZ))
    return tf.math.l2_normalize(tf.cast(heard_BS, tf.float32), 1)
