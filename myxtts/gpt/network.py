"""The GPT with its conditioning: a voice's vectors, then text, then audio codes, one causal row.

Legend: B batch, F frames, A mels, P vectors of the voice, S all positions, D width, V vocabulary,
X text positions, Y audio positions.
"""

from typing import NamedTuple

import tensorflow as tf

from myxtts.audio import size_of
from myxtts.conditioning import Conditioning, Perceiver
from myxtts.config import GptConfig
from myxtts.gpt.block import Block
from myxtts.gpt.sequence import Sequence
from myxtts.layers import Adapter, Dropout, Form, LayerNorm, Linear, Network, Precision, Table

TOKEN_START = 1.0
POSITION_START = 0.02
TEXT_ENDS = 2
AUDIO_ENDS = 3
ADDED = "added_"
"""Before the names of the weights that tokens have which a vocabulary was extended by."""


class Logits(NamedTuple):
    """What each position says comes next."""

    text_BXV: tf.Tensor
    audio_BYV: tf.Tensor


class Gpt(Network):
    """XTTS's GPT; `recompute` keeps no block's inner tensors for the backward pass.

    `form` is that of the blocks' attention, `adapter` what learns beside their matrices, and
    `added` how many of the text's tokens, the last ones, have weights of their own.
    """

    def __init__(
        self,
        config: GptConfig,
        precision: Precision = "float32",
        *,
        recompute: bool = False,
        form: Form = "auto",
        adapter: Adapter | None = None,
        added: int = 0,
    ) -> None:
        super().__init__("gpt")
        self.config = config
        self._old = config.text_tokens - added
        width = config.width
        self.conditioning = Conditioning(width, config.heads, "conditioning")
        self.perceiver = Perceiver(width, "perceiver")
        self.text_embedding = Table(self._old, width, "text_embedding", TOKEN_START)
        self.text_positions = Table(
            config.max_text_tokens + TEXT_ENDS, width, "text_positions", POSITION_START
        )
        self.audio_embedding = Table(config.audio_tokens, width, "audio_embedding", TOKEN_START)
        self.audio_positions = Table(
            config.max_audio_tokens + AUDIO_ENDS, width, "audio_positions", POSITION_START
        )
        self.blocks = [
            Block(
                width,
                config.heads,
                config.layers,
                f"block_{n}",
                recompute=recompute,
                form=form,
                adapter=adapter,
            )
            for n in range(config.layers)
        ]
        self.last_norm = LayerNorm(width, "last_norm")
        self.final_norm = LayerNorm(width, "final_norm")
        self.text_head = Linear(width, self._old, "text_head")
        self.audio_head = Linear(width, config.audio_tokens, "audio_head")
        self.added: tuple[Table, Linear] | None = None
        if added:
            table = Table(added, width, f"{ADDED}text_embedding", TOKEN_START)
            self.added = (table, Linear(width, added, f"{ADDED}text_head"))
        self.made(precision)

    def voice(self, mel_BFA: tf.Tensor) -> tf.Tensor:
        """(B, P, D): what a reference clip's mel says of its speaker."""
        return self.perceiver(self.conditioning(mel_BFA))

    def call(
        self, voice_BPD: tf.Tensor, sequence: Sequence, dropout: Dropout | None = None
    ) -> Logits:
        """For training: every position at once, padding unseen."""
        inputs_BSD = self.inputs(voice_BPD, sequence.text_BX, sequence.audio_BY)
        seen_BS = sequence.seen(voice_BPD.shape[1])
        hidden_BSD = self.hidden(inputs_BSD, seen_BS, dropout)
        text_BXD, audio_BYD = self.parts(hidden_BSD, voice_BPD.shape[1], sequence)
        return Logits(self._text_logits(text_BXD), self.audio_head(audio_BYD))

    def latents(self, voice_BPD: tf.Tensor, sequence: Sequence) -> tf.Tensor:
        """(B, Y, D): row i is the state that says code i, all positions seen, as when speaking."""
        inputs_BSD = self.inputs(voice_BPD, sequence.text_BX, sequence.audio_BY)
        hidden_BSD = self.hidden(inputs_BSD)
        return self.parts(hidden_BSD, voice_BPD.shape[1], sequence)[1]

    def inputs(self, voice_BPD: tf.Tensor, text_BX: tf.Tensor, audio_BY: tf.Tensor) -> tf.Tensor:
        """(B, S, D); the voice has no positions, text and audio have their own."""
        text_BXD = self._text_vectors(text_BX) + self.text_positions.first(size_of(text_BX, 1))
        audio_BYD = self.audio_embedding(audio_BY) + self.audio_positions.first(
            size_of(audio_BY, 1)
        )
        return tf.concat([tf.cast(voice_BPD, text_BXD.dtype), text_BXD, audio_BYD], 1)

    def _text_vectors(self, text_BX: tf.Tensor) -> tf.Tensor:
        if self.added is None:
            return self.text_embedding(text_BX)
        old_BXD = self.text_embedding(tf.minimum(text_BX, self._old - 1))
        added_BXD = self.added[0](tf.maximum(text_BX - self._old, 0))
        return tf.where((text_BX < self._old)[..., None], old_BXD, added_BXD)

    def _text_logits(self, text_BXD: tf.Tensor) -> tf.Tensor:
        old_BXV = self.text_head(text_BXD)
        if self.added is None:
            return old_BXV
        return tf.concat([old_BXV, self.added[1](text_BXD)], -1)

    def hidden(
        self,
        x_BSD: tf.Tensor,
        seen_BS: tf.Tensor | None = None,
        dropout: Dropout | None = None,
    ) -> tf.Tensor:
        """(B, S, D) after the last of the two norms that end the row of blocks."""
        if dropout is not None:
            x_BSD = dropout.child(0)(x_BSD)
        for number, block in enumerate(self.blocks):
            inner = None if dropout is None else dropout.child(number + 1)
            x_BSD = block(x_BSD, seen_BS, dropout=inner)
        return self.final_norm(self.last_norm(x_BSD))

    def parts(
        self, hidden_BSD: tf.Tensor, prefix: int, sequence: Sequence
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The text's positions and the audio's."""
        first = prefix + size_of(sequence.text_BX, 1)
        return hidden_BSD[:, prefix:first], hidden_BSD[:, first:]
