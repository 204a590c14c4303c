"""How a codebook begins and stays in use: k-means over vectors, and rare codes moved.

All in float32. Legend: V vectors, K codes, C width of a code.
"""

import tensorflow as tf

from myxtts.codec.codebook import CodebookState, nearest

ROUNDS = 12
"""Of k-means: after so many the codes hardly move."""
RESTED = 0.3
"""Share of the mean count that a moved code begins with, so that it is not rare at once."""


def k_means(vectors_VC: tf.Tensor, codes: int, count: float, key: tf.Tensor) -> CodebookState:
    """Codes amid vectors; `count` is how many vectors one step has, which their counts sum to."""
    order_V = tf.argsort(tf.random.stateless_uniform([tf.shape(vectors_VC)[0]], key))
    start_KC = tf.gather(vectors_VC, order_V[:codes])

    def better(codes_KC: tf.Tensor) -> tuple[tf.Tensor]:
        counts_K, sums_KC = _gathered(vectors_VC, codes_KC)
        # A code that nobody chose stays where it is.
        mean_KC = tf.math.divide_no_nan(sums_KC, counts_K[:, None])
        return (tf.where(counts_K[:, None] > 0, mean_KC, codes_KC),)

    (codes_KC,) = tf.while_loop(
        lambda _: tf.constant(True), better, (start_KC,), maximum_iterations=ROUNDS
    )
    counts_K, _ = _gathered(vectors_VC, codes_KC)
    counts_K = counts_K * count / tf.cast(tf.shape(vectors_VC)[0], tf.float32)
    return CodebookState(codes_KC, counts_K, codes_KC * counts_K[:, None])


def revived(state: CodebookState, candidates_VC: tf.Tensor, below: float) -> CodebookState:
    """Codes chosen less often than `below` times the mean take the candidates' places."""
    mean = tf.reduce_mean(state.counts_K)
    rare_K = state.counts_K < below * mean
    # The first rare code takes the first candidate, and so on; more than there are wait.
    place_K = tf.cumsum(tf.cast(rare_K, tf.int32)) - 1
    moves_K = tf.logical_and(rare_K, place_K < tf.shape(candidates_VC)[0])
    new_KC = tf.gather(candidates_VC, tf.clip_by_value(place_K, 0, tf.shape(candidates_VC)[0] - 1))
    vectors_KC = tf.where(moves_K[:, None], new_KC, state.vectors_KC)
    counts_K = tf.where(moves_K, RESTED * mean, state.counts_K)
    sums_KC = tf.where(moves_K[:, None], new_KC * RESTED * mean, state.sums_KC)
    return CodebookState(vectors_KC, counts_K, sums_KC)


def usage(counts_K: tf.Tensor, below: float) -> tuple[tf.Tensor, tf.Tensor]:
    """The share of codes that are not rare, and the perplexity: as many even codes say as much."""
    share_K = tf.math.divide_no_nan(counts_K, tf.reduce_sum(counts_K))
    entropy = -tf.reduce_sum(tf.math.xlogy(share_K, share_K))
    used = tf.cast(counts_K > below * tf.reduce_mean(counts_K), tf.float32)
    return tf.reduce_mean(used), tf.exp(entropy)


def _gathered(vectors_VC: tf.Tensor, codes_KC: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """How many vectors are nearest to each code, and their sum."""
    chosen_VK = tf.one_hot(nearest(vectors_VC, codes_KC), codes_KC.shape[0])
    return tf.reduce_sum(chosen_VK, 0), tf.matmul(chosen_VK, vectors_VC, transpose_a=True)
