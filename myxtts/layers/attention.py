"""Attention: each query's mean of the values, weighted by how well the keys fit.

Legend: B batch, H heads, T queries, S keys, C numbers for each head.
"""

from typing import Literal

import tensorflow as tf

from myxtts.layers.dropout import Dropout

UNSEEN = -1e30  # Finite, so that a row without any key has no NaN.

Form = Literal["auto", "plain", "blocks"]


def attend(  # noqa: PLR0913
    query_BHTC: tf.Tensor,
    key_BHSC: tf.Tensor,
    value_BHSC: tf.Tensor,
    *,
    seen_BS: tf.Tensor | None = None,
    causal: bool = False,
    dropout: Dropout | None = None,
    form: Form = "auto",
) -> tf.Tensor:
    """(B, H, T, C); a query that sees no key at all gets zeros."""
    if form == "blocks":
        raise NotImplementedError
    scale = query_BHTC.shape[-1] ** -0.5
    score_BHTS = tf.cast(tf.matmul(query_BHTC * scale, key_BHSC, transpose_b=True), tf.float32)
    see_BHTS = _visible(score_BHTS, seen_BS, causal=causal)
    if see_BHTS is not None:
        score_BHTS = tf.where(see_BHTS, score_BHTS, UNSEEN)
    weight_BHTS = tf.nn.softmax(score_BHTS)
    if seen_BS is not None:
        weight_BHTS = tf.where(see_BHTS, weight_BHTS, 0.0)
    weight_BHTS = tf.cast(weight_BHTS, value_BHSC.dtype)
    if dropout is not None:
        weight_BHTS = dropout(weight_BHTS)
    return tf.matmul(weight_BHTS, value_BHSC)


def _visible(score_BHTS: tf.Tensor, seen_BS: tf.Tensor | None, *, causal: bool) -> tf.Tensor | None:
    """Which scores count, in a shape that broadcasts to theirs; None if all do."""
    see = None
    if causal:
        place_S = tf.range(tf.shape(score_BHTS)[-1])
        see = (place_S[:, None] >= place_S[None, :])[None, None]
    if seen_BS is not None:
        seen = tf.cast(seen_BS, tf.bool)[:, None, None, :]
        see = seen if see is None else tf.logical_and(see, seen)
    return see
