"""Attention: each query's mean of the values, weighted by how well the keys fit.

Two forms give the same numbers: the plain one keeps every score for the backward pass, the other
(blocks.py) never has more than a block of them.

Legend: B batch, H heads, T queries, S keys, C numbers for each head, X all heads' numbers.
"""

from typing import Literal

import tensorflow as tf

from myxtts.layers.blocks import UNSEEN, attend_in_blocks
from myxtts.layers.dropout import Dropout

Form = Literal["auto", "plain", "blocks"]
"""How attention is computed; auto takes blocks from LARGE on."""

LARGE = 1024 * 1024
"""Queries times keys. On two CPU cores, in graph mode, a causal row takes blocks as much CPU time
as the plain form from here on, and less without dropout, which blocks draw twice; they need less
memory from 1024 positions on, not at 512 (docs/performance.md). A GPU will want to measure again.
"""


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
    """(B, H, T, C); each query must see a key, and queries are as many as keys if it is causal.

    "auto" decides when the graph is traced, and takes a length unknown by then for a long one.
    Under dropout the forms drop different weights, each always the same ones for a key.
    """
    if form == "blocks" or (form == "auto" and _is_large(query_BHTC, key_BHSC)):
        return attend_in_blocks(
            query_BHTC, key_BHSC, value_BHSC, seen_BS=seen_BS, causal=causal, dropout=dropout
        )
    scale = query_BHTC.shape[-1] ** -0.5
    score_BHTS = tf.matmul(query_BHTC * scale, key_BHSC, transpose_b=True)
    bias = _hidden(score_BHTS, seen_BS, causal=causal)
    score_BHTS = tf.cast(score_BHTS, tf.float32)
    if bias is not None:
        score_BHTS += bias
    weight_BHTS = tf.cast(tf.nn.softmax(score_BHTS), value_BHSC.dtype)
    if dropout is not None:
        weight_BHTS = dropout(weight_BHTS)
    return tf.matmul(weight_BHTS, value_BHSC)


def _is_large(query_BHTC: tf.Tensor, key_BHSC: tf.Tensor) -> bool:
    queries, keys = query_BHTC.shape[2], key_BHSC.shape[2]
    return queries is None or keys is None or queries * keys >= LARGE


def _hidden(score_BHTS: tf.Tensor, seen_BS: tf.Tensor | None, *, causal: bool) -> tf.Tensor | None:
    """What to add to the scores: 0, or very little where a key is not to be seen."""
    see = None
    if causal:
        place_S = tf.range(tf.shape(score_BHTS)[-1])
        see = (place_S[:, None] >= place_S[None, :])[None, None]
    if seen_BS is not None:
        seen = tf.cast(seen_BS, tf.bool)[:, None, None, :]
        see = seen if see is None else tf.logical_and(see, seen)
    return None if see is None else tf.where(see, 0.0, UNSEEN)


def split_heads(x_BTX: tf.Tensor, heads: int) -> tf.Tensor:
    """To (B, H, T, C)."""
    shape = tf.shape(x_BTX)
    x_BTHC = tf.reshape(x_BTX, [shape[0], shape[1], heads, x_BTX.shape[-1] // heads])
    return tf.transpose(x_BTHC, [0, 2, 1, 3])


def merge_heads(x_BHTC: tf.Tensor) -> tf.Tensor:
    """Back to (B, T, X)."""
    shape = tf.shape(x_BHTC)
    x_BTHC = tf.transpose(x_BHTC, [0, 2, 1, 3])
    return tf.reshape(x_BTHC, [shape[0], shape[2], x_BHTC.shape[1] * x_BHTC.shape[3]])
