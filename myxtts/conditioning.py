"""How a voice enters the GPT: mel frames of a reference clip become 32 vectors.

Legend: B batch, T frames, M mels, D width, H heads, C numbers for each head, L latents,
S latents and frames together, R all heads' latents.
"""

from typing import Any

import keras
import tensorflow as tf

from myxtts.audio import size_of
from myxtts.layers import GroupNorm, Linear, Part, RmsNorm, attend, merge_heads, split_heads

LATENTS = 32
"""Vectors that a voice becomes, whatever the length of its clip."""
MELS = 80
BLOCKS = 6
PERCEIVER_LAYERS = 2
PERCEIVER_HEADS = 8
HEAD_WIDTH = 64  # Of the perceiver, whatever the width of the rest.
TABLE_START = 0.02


class Conditioning(Part):
    """The encoder: mel frames to vectors of the GPT's width, one for each frame."""

    def __init__(self, width: int, heads: int, name: str) -> None:
        super().__init__(name)
        self.first = Linear(MELS, width, "first")
        self.blocks = [_EncoderBlock(width, heads, f"block_{n}") for n in range(BLOCKS)]

    def call(self, mel_BTM: tf.Tensor) -> tf.Tensor:
        """(B, T, D); padding is heard as silence, not hidden, as the reference does."""
        x_BTD = self.first(mel_BTM)
        for block in self.blocks:
            x_BTD = block(x_BTD)
        return x_BTD


class _EncoderBlock(Part):
    def __init__(self, width: int, heads: int, name: str) -> None:
        super().__init__(name)
        self._heads = heads
        self.norm = GroupNorm(width, "norm")
        self.qkv = Linear(width, 3 * width, "qkv")
        self.out = Linear(width, width, "out", start=0.0)

    def call(self, x_BTD: tf.Tensor) -> tf.Tensor:
        # The residual starts from the normalised input.
        normal_BTD = self.norm(x_BTD)
        # Each head's query, key and value lie together: (H, 3, C).
        together_BHTX = split_heads(self.qkv(normal_BTD), self._heads)
        query_BHTC, key_BHTC, value_BHTC = tf.split(together_BHTX, 3, axis=-1)
        return normal_BTD + self.out(merge_heads(attend(query_BHTC, key_BHTC, value_BHTC)))


class Perceiver(Part):
    """Asks the frames as many questions as there are latents."""

    def __init__(self, width: int, name: str) -> None:
        super().__init__(name)
        self._width = width
        self.layers_ = [_PerceiverLayer(width, f"layer_{n}") for n in range(PERCEIVER_LAYERS)]
        self.norm = RmsNorm(width, "norm")

    def build(self, shape: Any = None) -> None:
        """The latents are weights of their own, normal numbers at the start."""
        start = keras.initializers.RandomNormal(stddev=TABLE_START)
        self.latents = self.add_weight(
            shape=(LATENTS, self._width), initializer=start, name="latents"
        )
        super().build(shape)

    def call(self, x_BTD: tf.Tensor) -> tf.Tensor:
        """(B, L, D), whatever T is."""
        z_LD = tf.cast(tf.convert_to_tensor(self.latents), x_BTD.dtype)
        z_BLD = tf.broadcast_to(z_LD, [tf.shape(x_BTD)[0], LATENTS, self._width])
        for layer in self.layers_:
            z_BLD = layer(z_BLD, x_BTD)
        return self.norm(z_BLD)


class _PerceiverLayer(Part):
    def __init__(self, width: int, name: str) -> None:
        super().__init__(name)
        inner, between = PERCEIVER_HEADS * HEAD_WIDTH, width * 8 // 3
        self.query = Linear(width, inner, "query", bias=False)
        self.key_value = Linear(width, 2 * inner, "key_value", bias=False)
        self.out = Linear(inner, width, "out", bias=False)
        self.widen = Linear(width, 2 * between, "widen")
        self.narrow = Linear(between, width, "narrow")

    def call(self, z_BLD: tf.Tensor, x_BTD: tf.Tensor) -> tf.Tensor:
        z_BLD = z_BLD + self._attention(z_BLD, x_BTD)
        linear, gate = tf.split(self.widen(z_BLD), 2, axis=-1)
        return z_BLD + self.narrow(linear * tf.nn.gelu(gate, approximate=False))

    def _attention(self, z_BLD: tf.Tensor, x_BTD: tf.Tensor) -> tf.Tensor:
        """Takes the keys' matrix to the few queries, and the values' to the few results.

        So no frame becomes a key or a value: with their widths as they are, half the work.
        """
        heard_BSD = tf.concat([z_BLD, x_BTD], 1)
        batch, width = size_of(z_BLD, 0), heard_BSD.shape[-1]
        # Each half of the matrix: (D, H, C).
        both = tf.convert_to_tensor(self.key_value.kernel)
        key_DHC, value_DHC = (
            tf.reshape(half, [width, PERCEIVER_HEADS, HEAD_WIDTH])
            for half in tf.split(both, 2, axis=-1)
        )
        query_BHLC = split_heads(self.query(z_BLD), PERCEIVER_HEADS)
        query_BHLD = tf.matmul(query_BHLC, tf.transpose(key_DHC, [1, 2, 0]))
        # Scores are divided by the root of a head's width, not of D.
        query_BHLD *= (width / HEAD_WIDTH) ** 0.5
        query_B1RD = tf.reshape(query_BHLD, [batch, 1, PERCEIVER_HEADS * LATENTS, width])
        heard_B1SD = heard_BSD[:, None]
        mean_B1RD = attend(query_B1RD, heard_B1SD, heard_B1SD)
        mean_BHLD = tf.reshape(mean_B1RD, [batch, PERCEIVER_HEADS, LATENTS, width])
        return self.out(merge_heads(tf.matmul(mean_BHLD, tf.transpose(value_DHC, [1, 0, 2]))))
