"""One block of the GPT: attention, then two wide matrices, each added to what came in.

Legend: B batch, S positions, D width, H heads, C numbers for each head.
"""

import tensorflow as tf

from myxtts.layers import (
    Adapted,
    Adapter,
    Dropout,
    Form,
    LayerNorm,
    Linear,
    Part,
    attend,
    merge_heads,
    split_heads,
)

START = 0.02


class Block(Part):
    """GPT-2's: norms before, tanh's gelu, dropout on both results."""

    def __init__(  # noqa: PLR0913
        self,
        width: int,
        heads: int,
        blocks: int,
        name: str,
        *,
        recompute: bool = False,
        form: Form = "auto",
        adapter: Adapter | None = None,
    ) -> None:
        super().__init__(name)
        self._heads, self._recompute, self._form = heads, recompute, form
        # So many results are added up, two from each block, and their sum keeps its size.
        last = START * (2 * blocks) ** -0.5
        self.attention_norm = LayerNorm(width, "attention_norm")
        self.qkv = _linear(width, 3 * width, "qkv", START, adapter)
        self.out = _linear(width, width, "out", last, adapter)
        self.mlp_norm = LayerNorm(width, "mlp_norm")
        self.widen = _linear(width, 4 * width, "widen", START, adapter)
        self.narrow = _linear(4 * width, width, "narrow", last, adapter)

    def call(
        self, x_BSD: tf.Tensor, seen_BS: tf.Tensor | None = None, dropout: Dropout | None = None
    ) -> tf.Tensor:
        """(B, S, D)."""
        if not self._recompute:
            return self._whole(x_BSD, seen_BS, dropout)
        return tf.recompute_grad(lambda x: self._whole(x, seen_BS, dropout))(x_BSD)

    def _whole(
        self, x_BSD: tf.Tensor, seen_BS: tf.Tensor | None, dropout: Dropout | None
    ) -> tf.Tensor:
        drops = [None] * 3 if dropout is None else [dropout.child(n) for n in range(3)]
        heard_BSD = self.attention(x_BSD, seen_BS, drops[0])
        x_BSD = x_BSD + (heard_BSD if drops[1] is None else drops[1](heard_BSD))
        thought_BSD = self.mlp(x_BSD)
        return x_BSD + (thought_BSD if drops[2] is None else drops[2](thought_BSD))

    def attention(
        self, x_BSD: tf.Tensor, seen_BS: tf.Tensor | None, dropout: Dropout | None
    ) -> tf.Tensor:
        """Of each position to itself and those before it."""
        qkv_BSX = self.qkv(self.attention_norm(x_BSD))
        query, key, value = (split_heads(x, self._heads) for x in tf.split(qkv_BSX, 3, axis=-1))
        heard_BHSC = attend(
            query, key, value, seen_BS=seen_BS, causal=True, dropout=dropout, form=self._form
        )
        return self.out(merge_heads(heard_BHSC))

    def mlp(self, x_BSD: tf.Tensor) -> tf.Tensor:
        """Each position by itself."""
        return self.narrow(tf.nn.gelu(self.widen(self.mlp_norm(x_BSD)), approximate=True))


def _linear(width_in: int, width: int, name: str, start: float, adapter: Adapter | None) -> Linear:
    if adapter is None:
        return Linear(width_in, width, name, start=start)
    return Adapted(width_in, width, name, start=start, adapter=adapter)
