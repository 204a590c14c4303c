"""What the GPT reads and what it is to say, as a padded batch of fixed lengths.

Legend: B batch, T longest text, M most codes, X text positions (T + 2), Y audio positions (M + 5),
P vectors of the voice, S all positions.
"""

from typing import NamedTuple

import tensorflow as tf

from myxtts.audio import SAMPLES_PER_CODE, length_mask
from myxtts.config import GptConfig

STOPS = 4
"""Stops that are learned after the last code."""


class Sequence(NamedTuple):
    """Inputs, targets, and which of them count."""

    text_BX: tf.Tensor
    """Ids: start, the text, stop and padding."""
    text_target_BX: tf.Tensor
    audio_BY: tf.Tensor
    """Codes: start, the speech, stops."""
    audio_target_BY: tf.Tensor
    text_count_B: tf.Tensor
    """Text positions that are seen and learned: the text and one more."""
    audio_count_B: tf.Tensor
    """Audio positions that are seen and learned: the codes and four stops."""

    def seen(self, prefix: int) -> tf.Tensor:
        """(B, S): the voice, the text without its stop, the speech."""
        shape = tf.shape(self.text_BX)
        return tf.concat(
            [
                tf.ones([shape[0], prefix], tf.bool),
                length_mask(self.text_count_B, shape[1]),
                length_mask(self.audio_count_B, tf.shape(self.audio_BY)[1]),
            ],
            1,
        )


def lay_out(
    config: GptConfig,
    text_BT: tf.Tensor,
    text_lengths_B: tf.Tensor,
    codes_BM: tf.Tensor,
    samples_B: tf.Tensor,
) -> Sequence:
    """Whatever the padding of text and codes held, it is overwritten."""
    texts_B, samples_B = tf.cast(text_lengths_B, tf.int32), tf.cast(samples_B, tf.int32)
    codes_B = (samples_B + SAMPLES_PER_CODE - 1) // SAMPLES_PER_CODE
    text_BT = _ended(text_BT, texts_B, config.text_stop, 0)
    codes_BM = _ended(codes_BM, codes_B, config.audio_stop, STOPS)
    return Sequence(
        text_BX=_with_ends(text_BT, config.text_start, config.text_stop),
        text_target_BX=_with_ends(text_BT, None, config.text_stop, config.text_stop),
        audio_BY=_with_ends(codes_BM, config.audio_start),
        audio_target_BY=_with_ends(codes_BM, None, config.audio_stop),
        text_count_B=texts_B + 1,
        audio_count_B=codes_B + STOPS,
    )


def _ended(ids_BT: tf.Tensor, lengths_B: tf.Tensor, stop: int, more: int) -> tf.Tensor:
    """With `more` further places, and the stop in all that come after each item's length."""
    ids_BT = tf.pad(tf.cast(ids_BT, tf.int32), [[0, 0], [0, more]])
    return tf.where(length_mask(lengths_B, tf.shape(ids_BT)[1]), ids_BT, stop)


def _with_ends(ids_BT: tf.Tensor, first: int | None, *last: int) -> tf.Tensor:
    """The ids between a first one, where there is one, and the last ones."""
    before = [] if first is None else [first]
    rows = tf.shape(ids_BT)[0]
    ends = [tf.tile([tf.constant(e, tf.int32, [len(e)])], [rows, 1]) for e in (before, last)]
    return tf.concat([ends[0], ids_BT, ends[1]], 1)
