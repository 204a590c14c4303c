"""The codebook: which vector is nearest, and how the vectors follow those that chose them.

All in float32 whatever the network computes in, so that a code never hangs on the precision.
Legend: N any leading axes, V vectors (all of N in one axis), K codes, C width of a code.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from myxtts.config import CodecConfig
from myxtts.layers import size_of_leading

DECAY = 0.99
FEWEST = 1e-5
"""Added to every count, so that a code nobody chose is divided by more than zero."""


class CodebookState(NamedTuple):
    """The codebook at one step; no gradient reaches it, it moves by averages."""

    vectors_KC: tf.Tensor
    counts_K: tf.Tensor
    """How often each code is chosen in one step, averaged over the steps."""
    sums_KC: tf.Tensor
    """Sum of the vectors that chose each code, averaged likewise."""


class Codebook(keras.layers.Layer):
    """Vectors that stand for their neighbourhoods."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__(name="codebook", autocast=False)
        self._shape = (config.codes, config.code_width)

    def build(self, _shape: Any = None) -> None:
        """Normal vectors that nobody has chosen yet."""
        self.vectors = self._state("vectors", self._shape, keras.initializers.RandomNormal(0, 1))
        self.counts = self._state("counts", self._shape[:1], "zeros")
        # The sums start as the vectors do, so that the first step moves from there.
        self.sums = self._state("sums", self._shape, lambda *_, **__: self.vectors.value)

    def _state(self, name: str, shape: tuple[int, ...], start: Any) -> keras.Variable:
        return self.add_weight(
            shape=shape, initializer=start, name=name, trainable=False, autocast=False
        )

    @property
    def state(self) -> CodebookState:
        """What the weights hold now."""
        weights = (self.vectors, self.counts, self.sums)
        return CodebookState(*(tf.convert_to_tensor(weight) for weight in weights))

    def assign(self, state: CodebookState) -> None:
        """Takes over another state."""
        for weight, value in zip((self.vectors, self.counts, self.sums), state, strict=True):
            weight.assign(value)

    def codes(self, vectors_NC: tf.Tensor) -> tf.Tensor:
        """int32 (N,): the nearest code of each vector."""
        return nearest(vectors_NC, tf.convert_to_tensor(self.vectors))

    def look_up(self, codes_N: tf.Tensor) -> tf.Tensor:
        """float32 (N, C): the codes' vectors."""
        return tf.gather(tf.convert_to_tensor(self.vectors), codes_N)


def nearest(vectors_NC: tf.Tensor, codebook_KC: tf.Tensor) -> tf.Tensor:
    """int32 (N,): the code at the least squared distance, the first of several."""
    leading, width = size_of_leading(vectors_NC), codebook_KC.shape[1]
    vectors_VC = tf.reshape(tf.cast(vectors_NC, tf.float32), [-1, width])
    own_V1 = tf.reduce_sum(tf.square(vectors_VC), 1, keepdims=True)
    codes_K = tf.reduce_sum(tf.square(codebook_KC), 1)
    product_VK = tf.matmul(vectors_VC, codebook_KC, transpose_b=True)
    distance_VK = own_V1 - 2 * product_VK + codes_K
    return tf.reshape(tf.argmin(distance_VK, 1, output_type=tf.int32), leading)


def moved(
    state: CodebookState, vectors_NC: tf.Tensor, codes_N: tf.Tensor, decay: float = DECAY
) -> CodebookState:
    """The codebook after a step in which the vectors chose these codes."""
    return followed(state, *chosen(vectors_NC, codes_N, state.vectors_KC.shape[0]), decay)


def chosen(
    vectors_NC: tf.Tensor, codes_N: tf.Tensor, codes: int, weights_N: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """How many vectors chose each code, and their sum; weights of 0 leave vectors out."""
    vectors_VC = tf.reshape(tf.cast(vectors_NC, tf.float32), [-1, vectors_NC.shape[-1]])
    # A product, not a scatter: a scatter on a GPU adds in another order each time.
    chosen_VK = tf.one_hot(tf.reshape(codes_N, [-1]), codes)
    if weights_N is not None:
        chosen_VK *= tf.reshape(weights_N, [-1, 1])
    sums_KC = tf.matmul(chosen_VK, tf.stop_gradient(vectors_VC), transpose_a=True)
    return tf.reduce_sum(chosen_VK, 0), sums_KC


def followed(
    state: CodebookState, counts_K: tf.Tensor, sums_KC: tf.Tensor, decay: float = DECAY
) -> CodebookState:
    """The codebook after a step whose vectors have these counts and sums."""
    counts_K = decay * state.counts_K + (1 - decay) * counts_K
    sums_KC = decay * state.sums_KC + (1 - decay) * sums_KC
    total, codes = tf.reduce_sum(counts_K), state.vectors_KC.shape[0]
    smoothed_K = (counts_K + FEWEST) / (total + codes * FEWEST) * total
    return CodebookState(sums_KC / smoothed_K[:, None], counts_K, sums_KC)
