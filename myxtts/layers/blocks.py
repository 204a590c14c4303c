"""Attention block by block: the scores of few queries and few keys at a time, never of all.

The forward pass goes over the keys with a running maximum and sum; the backward pass computes
each block's weights again. So memory grows with the length, not with its square. Scores stand on
their side, keys before queries: so no matrix product turns its left side, which compilers for
CPUs do slowly.

Legend: B batch, H heads, T queries, S keys, C numbers for each head, N blocks, Q queries of a
block, K keys of a block.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from myxtts.audio import size_of
from myxtts.layers.dropout import Dropout

UNSEEN = -1e30  # Finite, so that a row without any key has no NaN.
BLOCK = 256
"""Most queries or keys of a block; all blocks of a row have one size."""


def attend_in_blocks(
    query_BHTC: tf.Tensor,
    key_BHSC: tf.Tensor,
    value_BHSC: tf.Tensor,
    *,
    seen_BS: tf.Tensor | None = None,
    causal: bool = False,
    dropout: Dropout | None = None,
) -> tf.Tensor:
    """(B, H, T, C); its gradient has no gradient."""
    rows, columns = _cut_of(query_BHTC), _cut_of(key_BHSC)
    hidden = _hidden_keys(columns, seen_BS, causal=causal)
    scores = _Scores(rows, columns, hidden, causal, dropout)

    def whole(query_BHTC: tf.Tensor, key_BHSC: tf.Tensor, value_BHSC: tf.Tensor) -> Any:
        scale = query_BHTC.shape[-1] ** -0.5
        given = _Given(rows.cut(query_BHTC * scale), columns.cut(key_BHSC), columns.cut(value_BHSC))
        heard_NBHCQ, log_sum_NBH1Q = _forward(scores, given)
        heard_BHTC = tf.cast(rows.join(heard_NBHCQ, turned=True), value_BHSC.dtype)

        def gradients(error_BHTC: tf.Tensor) -> tuple[tf.Tensor, ...]:
            product_BHTC = tf.cast(error_BHTC, tf.float32) * tf.cast(heard_BHTC, tf.float32)
            mean_BHT1 = tf.reduce_sum(product_BHTC, -1, keepdims=True)
            errors = _Errors(rows.cut(error_BHTC), rows.cut(mean_BHT1, turned=True), log_sum_NBH1Q)
            query_NBHCQ, key_NBHKC, value_NBHKC = _backward(scores, given, errors)
            found = (
                rows.join(query_NBHCQ, turned=True) * scale,
                columns.join(key_NBHKC),
                columns.join(value_NBHKC),
            )
            return tuple(tf.cast(x, query_BHTC.dtype) for x in found)

        return heard_BHTC, gradients

    return tf.custom_gradient(whole)(query_BHTC, key_BHSC, value_BHSC)


class _Given(NamedTuple):
    """Blocks of what is to be attended, the queries times their scale."""

    query_NBHQC: tf.Tensor
    key_NBHKC: tf.Tensor
    value_NBHKC: tf.Tensor


class _Errors(NamedTuple):
    """What the backward pass knows of each block of queries."""

    error_NBHQC: tf.Tensor
    mean_NBH1Q: tf.Tensor
    """Of the weights' errors, by the weights."""
    log_sum_NBH1Q: tf.Tensor


@dataclass(frozen=True)
class _Cut:
    """How a row of `length` becomes `count` blocks of `size`; zeros fill the last."""

    length: Any
    count: Any
    size: Any

    def cut(self, x_BHTC: tf.Tensor, *, turned: bool = False) -> tf.Tensor:
        """(N, B, H, Q, C), or (N, B, H, C, Q) when they are turned."""
        batch, heads, _, width = (size_of(x_BHTC, axis) for axis in range(4))
        missing = self.count * self.size - self.length
        filled_BHTC = tf.pad(x_BHTC, [[0, 0], [0, 0], [0, missing], [0, 0]])
        x_BHNQC = tf.reshape(filled_BHTC, [batch, heads, self.count, self.size, width])
        return tf.transpose(x_BHNQC, [2, 0, 1, 4, 3] if turned else [2, 0, 1, 3, 4])

    def join(self, x_NBHQC: tf.Tensor, *, turned: bool = False) -> tf.Tensor:
        """(B, H, T, C) of the blocks that `cut` would give."""
        x_BHNQC = tf.transpose(x_NBHQC, [1, 2, 0, 4, 3] if turned else [1, 2, 0, 3, 4])
        batch, heads, width = (size_of(x_BHNQC, axis) for axis in (0, 1, 4))
        filled_BHTC = tf.reshape(x_BHNQC, [batch, heads, self.count * self.size, width])
        return filled_BHTC[:, :, : self.length]


def _cut_of(x_BHTC: tf.Tensor) -> _Cut:
    """Blocks of one size, as few as may be."""
    length = size_of(x_BHTC, 2)
    count = (length + BLOCK - 1) // BLOCK
    size = (length + count - 1) // count
    return _Cut(length, count, size)


@dataclass(frozen=True)
class _Scores:
    """Scores, and what becomes of them, of one block of queries and one of keys."""

    rows: _Cut
    columns: _Cut
    hidden_NBHK1: tf.Tensor | None
    causal: bool
    dropout: Dropout | None

    def of(self, given: _Given, row: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
        """In float32, (B, H, K, Q)."""
        score_BHKQ = tf.matmul(given.key_NBHKC[column], given.query_NBHQC[row], transpose_b=True)
        score_BHKQ = tf.cast(score_BHKQ, tf.float32)
        if self.hidden_NBHK1 is not None:
            score_BHKQ += self.hidden_NBHK1[column]
        if self.causal:
            place_K1 = column * self.columns.size + tf.range(self.columns.size)[:, None]
            place_Q = row * self.rows.size + tf.range(self.rows.size)
            score_BHKQ = tf.where(place_K1 <= place_Q, score_BHKQ, UNSEEN)
        return score_BHKQ

    def kept(self, x_BHKQ: tf.Tensor, row: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
        """After dropout, which has a key of its own for every block."""
        if self.dropout is None:
            return x_BHKQ
        return self.dropout.child(row * self.columns.count + column)(x_BHKQ)

    def columns_of(self, row: tf.Tensor) -> Any:
        """How many blocks of keys, from the first, a block of queries sees."""
        return row + 1 if self.causal else self.columns.count

    def first_row_of(self, column: tf.Tensor) -> Any:
        """The first block of queries that sees a block of keys."""
        return column if self.causal else 0


def _hidden_keys(columns: _Cut, seen_BS: tf.Tensor | None, *, causal: bool) -> tf.Tensor | None:
    """What to add to the scores of keys that are not seen, padding among them; (N, B, H, K, 1)."""
    if seen_BS is None:
        # Keys after the last are seen by no query that counts if each sees only those before it.
        if causal:
            return None
        seen_BS = tf.ones([1, columns.length], tf.bool)
    seen_BHS1 = tf.cast(tf.cast(seen_BS, tf.bool), tf.float32)[:, None, :, None]
    return (1.0 - columns.cut(seen_BHS1)) * UNSEEN


def _forward(scores: _Scores, given: _Given) -> tuple[tf.Tensor, tf.Tensor]:
    """Blocks of the result, turned, and of the logarithms of the weights' sums."""
    value_NBHCK = tf.transpose(given.value_NBHKC, [0, 1, 2, 4, 3])
    row_BH1Q = tf.zeros_like(given.query_NBHQC[0, :, :, None, :, 0], tf.float32)
    heard_BHCQ = tf.tile(row_BH1Q, [1, 1, given.query_NBHQC.shape[-1], 1])
    start = (row_BH1Q + UNSEEN, row_BH1Q, heard_BHCQ)

    def hear(row: tf.Tensor, heard: tf.TensorArray, log_sums: tf.TensorArray) -> Any:
        def add(column: tf.Tensor, most: tf.Tensor, total: tf.Tensor, sofar: tf.Tensor) -> Any:
            score_BHKQ = scores.of(given, row, column)
            higher = tf.maximum(most, tf.reduce_max(score_BHKQ, 2, keepdims=True))
            weight_BHKQ, shrink = tf.exp(score_BHKQ - higher), tf.exp(most - higher)
            total = total * shrink + tf.reduce_sum(weight_BHKQ, 2, keepdims=True)
            kept = tf.cast(scores.kept(weight_BHKQ, row, column), value_NBHCK.dtype)
            more_BHCQ = tf.cast(tf.matmul(value_NBHCK[column], kept), tf.float32)
            return column + 1, higher, total, sofar * shrink + more_BHCQ

        _, most, total, sofar = _loop(add, 0, scores.columns_of(row), start)
        heard = heard.write(row, sofar / total)
        return row + 1, heard, log_sums.write(row, most + tf.math.log(total))

    count = scores.rows.count
    places = (_array(heard_BHCQ, count), _array(row_BH1Q, count))
    _, heard, log_sums = _loop(hear, 0, count, places)
    return heard.stack(), log_sums.stack()


def _backward(scores: _Scores, given: _Given, errors: _Errors) -> tuple[tf.Tensor, ...]:
    """Blocks of the gradients of the queries, turned, of the keys and of the values."""
    key_NBHCK = tf.transpose(given.key_NBHKC, [0, 1, 2, 4, 3])
    dtype = given.key_NBHKC.dtype
    none_BHKC = tf.zeros_like(given.key_NBHKC[0], tf.float32)
    none_BHCQ = tf.zeros_like(tf.transpose(given.query_NBHQC[0], [0, 1, 3, 2]), tf.float32)

    def learn(column: tf.Tensor, queries: tf.TensorArray, *places: tf.TensorArray) -> Any:
        def add(row: tf.Tensor, key: tf.Tensor, value: tf.Tensor, queries: tf.TensorArray) -> Any:
            score_BHKQ = scores.of(given, row, column)
            weight_BHKQ = tf.exp(score_BHKQ - errors.log_sum_NBH1Q[row])
            error_BHQC = errors.error_NBHQC[row]
            kept = tf.cast(scores.kept(weight_BHKQ, row, column), dtype)
            value += tf.cast(tf.matmul(kept, error_BHQC), tf.float32)
            turned = tf.matmul(given.value_NBHKC[column], error_BHQC, transpose_b=True)
            wrong_BHKQ = scores.kept(tf.cast(turned, tf.float32), row, column)
            moved = tf.cast(weight_BHKQ * (wrong_BHKQ - errors.mean_NBH1Q[row]), dtype)
            key += tf.cast(tf.matmul(moved, given.query_NBHQC[row]), tf.float32)
            query_BHCQ = tf.cast(tf.matmul(key_NBHCK[column], moved), tf.float32)
            return row + 1, key, value, queries.write(row, queries.read(row) + query_BHCQ)

        start = (none_BHKC, none_BHKC, queries)
        rows = scores.rows.count
        _, key, value, queries = _loop(add, scores.first_row_of(column), rows, start)
        return column + 1, queries, places[0].write(column, key), places[1].write(column, value)

    rows, columns = scores.rows.count, scores.columns.count
    places = (_array(none_BHCQ, rows), _array(none_BHKC, columns), _array(none_BHKC, columns))
    _, *found = _loop(learn, 0, columns, places)
    return tuple(array.stack() for array in found)


def _array(zero: tf.Tensor, count: Any) -> tf.TensorArray:
    """So many zeros; a list of their shape, which XLA must know before the loop."""
    several = tf.repeat(zero[None], count, 0)
    array = tf.TensorArray(zero.dtype, size=count, element_shape=zero.shape, clear_after_read=False)
    return array.unstack(several)


def _loop(body: Any, first: Any, end: Any, start: tuple[Any, ...]) -> Any:
    """`body(number, *state)` from `first` to `end`; one at a time, because memory counts."""
    return tf.while_loop(
        lambda number, *_: number < end,
        body,
        (tf.convert_to_tensor(first), *start),
        parallel_iterations=1,
    )
