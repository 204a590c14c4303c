"""Cross-entropy of text and audio, each the mean over all valid targets of the batch.

Legend: B batch, X text positions, Y audio positions, V vocabulary.
"""

from typing import Literal, NamedTuple

import tensorflow as tf

from myxtts.audio import SAMPLES_PER_CODE, length_mask
from myxtts.gpt.sequence import Sequence

Ignored = Literal["nothing", "own", "reference"]
"""What the audio loss leaves out of the part of a clip that was the voice: nothing; each clip's
own part; or what the reference leaves out, four times too far and in the last clip alone."""

REFERENCE_STEP = 256  # The reference divides by a hop of the mel where a code has four.


class GptLoss(NamedTuple):
    """Both means, before they are weighted."""

    text: tf.Tensor
    audio: tf.Tensor


def gpt_loss(
    text_logits_BXV: tf.Tensor,
    audio_logits_BYV: tf.Tensor,
    sequence: Sequence,
    voice_B2: tf.Tensor | None = None,
    ignored: Ignored = "nothing",
) -> GptLoss:
    """`voice_B2` is the part of each clip, in samples, that its voice was taken from."""
    text_BX = length_mask(sequence.text_count_B, tf.shape(sequence.text_BX)[1])
    audio_BY = length_mask(sequence.audio_count_B, tf.shape(sequence.audio_BY)[1])
    if ignored != "nothing":
        if voice_B2 is None:
            raise ValueError(f"leaving out {ignored!r} needs to know what the voice was taken from")
        audio_BY = tf.logical_and(audio_BY, ~_voice(voice_B2, tf.shape(audio_BY), ignored))
    return GptLoss(
        _mean_entropy(text_logits_BXV, sequence.text_target_BX, text_BX),
        _mean_entropy(audio_logits_BYV, sequence.audio_target_BY, audio_BY),
    )


def _voice(voice_B2: tf.Tensor, shape: tf.Tensor, ignored: Ignored) -> tf.Tensor:
    step = SAMPLES_PER_CODE if ignored == "own" else REFERENCE_STEP
    part_B2 = tf.cast(voice_B2, tf.int32) // step
    before_BY, until_BY = (length_mask(part_B2[:, end], shape[1]) for end in (0, 1))
    inside_BY = tf.logical_and(until_BY, ~before_BY)
    if ignored == "own":
        return inside_BY
    return tf.logical_and(inside_BY, (tf.range(shape[0]) == shape[0] - 1)[:, None])


def _mean_entropy(logits_BYV: tf.Tensor, target_BY: tf.Tensor, counts_BY: tf.Tensor) -> tf.Tensor:
    """In float32; 0 where nothing counts."""
    entropy_BY = tf.nn.sparse_softmax_cross_entropy_with_logits(
        target_BY, tf.cast(logits_BYV, tf.float32)
    )
    counts_BY = tf.cast(counts_BY, tf.float32)
    return tf.math.divide_no_nan(tf.reduce_sum(entropy_BY * counts_BY), tf.reduce_sum(counts_BY))
