"""What decoding carries from one code to the next, and where its attention looks things up.

The cache has its full length from the start, so that one program serves every step. Keys lie
as (places, numbers) and values as (numbers, places): what a product sums over is last in both.

Legend: B batch, L blocks, H heads, S places of the cache, T places before the first code,
R places that are read, C numbers for each head, N most codes, V vocabulary or nothing, D width.
"""

from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

from myxtts.gpt.kinds import total

UNSEEN = -1e30  # Finite, so that nothing becomes NaN.


class Cache(NamedTuple):
    """Keys and values of every place so far."""

    key_LBHSC: tf.Tensor
    value_LBHCS: tf.Tensor


class State(NamedTuple):
    """Everything between two codes; it is all that decoding in pieces hands on."""

    step: tf.Tensor
    """Codes said so far, of rows that did not stop."""
    code_B: tf.Tensor
    """The last of them: what the next step is fed."""
    length_B: tf.Tensor
    """Codes of each row, its stop among them."""
    stopped_B: tf.Tensor
    seen_BT: tf.Tensor
    """The voice and the text, without the padding."""
    said_BV: tf.Tensor
    """The codes that the repetition penalty holds down."""
    chance_BN: tf.Tensor
    cache: Cache
    code_BN: tf.Tensor
    latent_BND: tf.Tensor
    logits_BNV: tf.Tensor


def empty_cache(shape_LBHSC: list[int]) -> Cache:
    """Zeros: what is not seen yet must still be a number."""
    blocks, batch, heads, places, size = shape_LBHSC
    return Cache(tf.zeros(shape_LBHSC), tf.zeros([blocks, batch, heads, size, places]))


def put(whole: tf.Tensor, part: tf.Tensor, begin: list[Any], *, jit: bool) -> tf.Tensor:
    """The whole with a part of it replaced, in place where the compiler sees that it may."""
    if 0 in part.shape.as_list():
        return whole
    if jit:
        return xla.dynamic_update_slice(whole, part, tf.stack(begin))
    places = [tf.range(size) + first for size, first in zip(part.shape, begin, strict=True)]
    grid = tf.stack(tf.meshgrid(*places, indexing="ij"), -1)
    return tf.tensor_scatter_nd_update(whole, grid, part)


def remember(
    cache: Cache,
    key_BHTC: tf.Tensor,
    value_BHTC: tf.Tensor,
    at: tuple[Any, Any],
    *,
    jit: bool,
) -> Cache:
    """Writes a block's keys and values; `at` is the block and the first place."""
    block, place = at
    value_BHCT = tf.transpose(value_BHTC, [0, 1, 3, 2])
    return Cache(
        put(cache.key_LBHSC, key_BHTC[None], [block, 0, 0, place, 0], jit=jit),
        put(cache.value_LBHCS, value_BHCT[None], [block, 0, 0, 0, place], jit=jit),
    )


def look_up(cache: Cache, block: tf.Tensor, query_BH1C: tf.Tensor, bias_BR: tf.Tensor) -> tf.Tensor:
    """(B, H, 1, C): one place's attention to the first R places."""
    reach = bias_BR.shape[1]
    key_BHRC = cache.key_LBHSC[block, :, :, :reach]
    value_BHCR = cache.value_LBHCS[block, :, :, :, :reach]
    scale = query_BH1C.shape[-1] ** -0.5
    score_BH1R = _each_head(query_BH1C * scale, key_BHRC) + bias_BR[:, None, None]
    weight_BH1R = tf.exp(score_BH1R - tf.reduce_max(score_BH1R, -1, keepdims=True))
    return _each_head(weight_BH1R, value_BHCR) / total(weight_BH1R)


def _each_head(x_BH1I: tf.Tensor, y_BHOI: tf.Tensor) -> tf.Tensor:
    """Products of each head, (B, H, 1, O)."""
    batch, heads = x_BH1I.shape[:2]
    if batch > 1:
        return tf.matmul(x_BH1I, y_BHOI, transpose_b=True)
    # XLA reads a single product's matrix where it lies in the cache, and copies it for many.
    rows = [tf.matmul(x_BH1I[0, n], y_BHOI[0, n], transpose_b=True) for n in range(heads)]
    return tf.stack(rows)[None]


def places_seen(seen_BT: tf.Tensor, step: tf.Tensor, reach: int) -> tf.Tensor:
    """(B, R): 0, or very little for padding of the text and for codes not said yet."""
    prefix = seen_BT.shape[1]
    codes_R = tf.range(reach - prefix) <= step
    codes_BR = tf.repeat(codes_R[None], seen_BT.shape[0], 0)
    return tf.where(tf.concat([seen_BT, codes_BR], 1), 0.0, UNSEEN)
