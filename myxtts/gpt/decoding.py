"""Text and a voice to codes and their latents, one code after the other in one compiled loop.

Legend: B batch, P vectors of the voice, X text positions with padding, T = P + X, S places of
the cache, N most codes, D width, V vocabulary, H heads, C numbers for each head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.audio import length_mask
from myxtts.config import GptConfig
from myxtts.errors import UserError
from myxtts.gpt.cache import (
    Cache,
    State,
    empty_cache,
    look_up,
    places_seen,
    put,
    remember,
)
from myxtts.gpt.kinds import BlockWeights, DecodingWeights, normal
from myxtts.gpt.sampling import PLACEHOLDER, Rules, Sampling, chances, draw, rules
from myxtts.layers import attend, merge_heads, split_heads
from myxtts.pipeline import Program

UNSPOKEN = 3
"""Of the longest speech: the reference keeps the start, the stop and one more place free."""
TEXT_LADDER = (24, 48, 72, 96, 144, 192, 288)  # Padded text positions.
CODE_LADDER = (80, 160, 320)  # The loop reads no more of the cache than the codes so far need.


class TextError(UserError):
    """A text that this network cannot speak."""


@dataclass(frozen=True)
class Request:
    """What is to be said: a voice and a text for each row."""

    voice_BPD: tf.Tensor
    texts: Sequence[Sequence[int]]
    """Ids without start and stop."""
    seed: int = 0
    rows: Sequence[int] | None = None
    """Numbers that tell rows of one seed apart; 0, 1, 2 … where none are given.

    A row says the same under the same number, whoever else is in the batch.
    """
    limit: int | None = None
    """Most codes of a row, its stop among them; left out, as many as the network has room for."""


@dataclass(frozen=True)
class Spoken:
    """Codes and latents: a whole speech, or the next piece of it."""

    code_BN: tf.Tensor
    """int32; after a row's stop, stops."""
    latent_BND: tf.Tensor
    """float32; row i is the state that said code i. After a row's stop it means nothing."""
    length_B: tf.Tensor
    """Codes of each row in this piece, its stop among them."""
    stopped_B: tf.Tensor
    """Which rows have said their stop; the others ran into the limit, or will go on."""
    logits_BNV: tf.Tensor
    """What each code was drawn from, before any rule; empty unless they are kept."""


class Decoder:
    """Speaks codes with one GPT's weights on one device.

    Under XLA a row costs one reading of the weights for each code. Graph mode copies each
    block's weights first, and is there to be compared with.
    """

    def __init__(
        self,
        config: GptConfig,
        weights: DecodingWeights,
        device: str,
        *,
        jit: bool = True,
        keep_logits: bool = False,
    ) -> None:
        self._config, self._weights, self.device = config, weights, device
        self._jit, self._keep_logits = jit, keep_logits
        self.most_codes = config.max_audio_tokens - UNSPOKEN
        # The room for codes shapes the first program's results and none of its inputs.
        self._begin: dict[int, Program] = {}
        self._more = Program(self._go_on, device, jit=jit, name="decode")

    @property
    def traces(self) -> int:
        """Programs compiled so far."""
        return self._more.traces + sum(program.traces for program in self._begin.values())

    def decode(self, request: Request, sampling: Sampling | None = None) -> Spoken:
        """Until every row has stopped or the limit is reached."""
        limit = self._limit(request)
        with tf.device(self.device):
            rule, state = rules(sampling or Sampling()), self._started(request, limit)
            state = self._more(state, tf.constant(limit), rule)
            return _between(state, 0, int(state.step))

    def stream(
        self, request: Request, sampling: Sampling | None = None, every: int = 20
    ) -> Iterator[Spoken]:
        """The same codes and latents, some codes at a time."""
        limit, said = self._limit(request), 0
        with tf.device(self.device):
            rule, state = rules(sampling or Sampling()), self._started(request, limit)
        while said < limit and not bool(tf.reduce_all(state.stopped_B)):
            with tf.device(self.device):
                state = self._more(state, tf.constant(min(said + every, limit)), rule)
                piece = _between(state, said, int(state.step))
            said = int(state.step)
            yield piece  # After the scope, or the paused generator leaks it.

    def _limit(self, request: Request) -> int:
        limit = self.most_codes if request.limit is None else request.limit
        if not 0 < limit <= self.most_codes:
            raise TextError(
                f"a limit of {limit} codes", f"give a limit from 1 to {self.most_codes}"
            )
        return limit

    def _started(self, request: Request, limit: int) -> State:
        text_BX, count_B = self._text(request)
        rows = range(len(request.texts)) if request.rows is None else request.rows
        room = _rung(limit, CODE_LADDER, self.most_codes)
        if room not in self._begin:
            body = partial(self._prefill, room=room)
            self._begin[room] = Program(body, self.device, jit=self._jit, name="prefill")
        voice_BPD = tf.cast(request.voice_BPD, tf.float32)
        keys = tf.constant(request.seed, tf.int32), tf.constant(list(rows), tf.int32)
        return State(*self._begin[room](voice_BPD, text_BX, count_B, *keys))

    def _text(self, request: Request) -> tuple[tf.Tensor, tf.Tensor]:
        """Start, ids, stop and padding; and how many positions are no padding."""
        config = self._config
        if len(request.texts) != request.voice_BPD.shape[0]:
            raise TextError(
                f"{len(request.texts)} texts for {request.voice_BPD.shape[0]} voices",
                "give each text a voice",
            )
        for text in request.texts:
            _check_text(text, config)
        most = max(len(text) for text in request.texts) + 2
        text_BX = np.full(
            (len(request.texts), _rung(most, TEXT_LADDER, config.max_text_tokens + 2)),
            config.text_stop,
        )
        for row, text in zip(text_BX, request.texts, strict=True):
            row[: len(text) + 1] = [config.text_start, *text]
        counts = [len(text) + 2 for text in request.texts]
        return tf.constant(text_BX, tf.int32), tf.constant(counts, tf.int32)

    def _prefill(
        self,
        voice_BPD: tf.Tensor,
        text_BX: tf.Tensor,
        count_B: tf.Tensor,
        seed: tf.Tensor,
        row_B: tf.Tensor,
        *,
        room: int,
    ) -> State:
        """One pass over the voice and the text; the start code is the first step's."""
        weights, config = self._weights, self._config
        batch, positions = text_BX.shape
        text_BXD = tf.gather(weights.text_embedding, text_BX)
        x_BTD = tf.concat([voice_BPD, text_BXD + weights.text_positions[:positions]], 1)
        seen_BT = tf.concat(
            [tf.ones(voice_BPD.shape[:2], tf.bool), length_mask(count_B, positions)], 1
        )
        said_V = tf.reduce_any(
            tf.one_hot([PLACEHOLDER, config.audio_start], config.audio_tokens, True, False), 0
        )
        kept = config.audio_tokens if self._keep_logits else 0
        return State(
            step=tf.constant(0),
            code_B=tf.fill([batch], config.audio_start),
            length_B=tf.zeros([batch], tf.int32),
            stopped_B=tf.zeros([batch], tf.bool),
            seen_BT=seen_BT,
            said_BV=tf.repeat(said_V[None], batch, 0),
            chance_BN=chances(seed, row_B, self.most_codes),
            cache=self._read(x_BTD, seen_BT, x_BTD.shape[1] + room),
            code_BN=tf.fill([batch, room], config.audio_stop),
            latent_BND=tf.zeros([batch, room, config.width]),
            logits_BNV=tf.zeros([batch, room, kept]),
        )

    def _read(self, x_BTD: tf.Tensor, seen_BT: tf.Tensor, places: int) -> Cache:
        """The cache after all blocks have seen the voice and the text."""
        config = self._config
        shape = [
            config.layers,
            x_BTD.shape[0],
            config.heads,
            places,
            config.width // config.heads,
        ]

        def block(number: tf.Tensor, x_BTD: tf.Tensor, cache: Cache) -> tuple[Any, ...]:
            weights = self._weights.blocks.at(number)
            query, key, value = self._heads(weights, x_BTD)
            cache = remember(cache, key, value, (number, 0), jit=self._jit)
            heard = attend(query, key, value, seen_BS=seen_BT, causal=True)
            x_BTD += weights.out(_merged(heard))
            return number + 1, x_BTD + weights.mlp(x_BTD), cache

        return _each_block(config.layers, block, x_BTD, empty_cache(shape))[1]

    def _go_on(self, state: State, until: tf.Tensor, rule: Rules) -> State:
        """Steps until a number of codes, or until all rows have stopped.

        One loop after the other, each reading more of the cache; the compiler keeps it in place.
        """
        prefix, room = state.seen_BT.shape[1], state.code_BN.shape[1]
        for end in [*(rung for rung in CODE_LADDER if rung < room), room]:
            least = tf.minimum(until, end)
            state = tf.while_loop(
                lambda s, least=least: (s.step < least) & ~tf.reduce_all(s.stopped_B),
                lambda s, end=end: (self._step(s, rule, prefix + end),),
                (state,),
            )[0]
        return state

    def _step(self, state: State, rule: Rules, reach: int) -> State:
        weights, config = self._weights, self._config
        x_BD = tf.gather(weights.audio_embedding, state.code_B)
        x_BD += weights.audio_positions[state.step]
        hidden_B1D, cache = self._blocks(state, x_BD[:, None], reach)
        latent_BD = weights.final_norm(weights.last_norm(hidden_B1D[:, 0]))
        logits_BV = weights.audio_head(latent_BD)
        code_B = draw(
            logits_BV, state.said_BV, state.chance_BN[:, state.step], rule, config.audio_start
        )
        code_B = tf.where(state.stopped_B, config.audio_stop, code_B)
        write = partial(put, begin=[0, state.step, 0], jit=self._jit)
        kept = state.logits_BNV.shape[2]
        return state._replace(
            step=state.step + 1,
            code_B=code_B,
            length_B=state.length_B + tf.cast(~state.stopped_B, tf.int32),
            stopped_B=tf.logical_or(state.stopped_B, code_B == config.audio_stop),
            said_BV=tf.logical_or(
                state.said_BV, tf.one_hot(code_B, config.audio_tokens, True, False)
            ),
            cache=cache,
            code_BN=put(state.code_BN, code_B[:, None], [0, state.step], jit=self._jit),
            latent_BND=write(state.latent_BND, latent_BD[:, None]),
            logits_BNV=write(state.logits_BNV, logits_BV[:, None, :kept]),
        )

    def _blocks(self, state: State, x_B1D: tf.Tensor, reach: int) -> tuple[tf.Tensor, Cache]:
        """One place through all blocks."""
        place = state.seen_BT.shape[1] + state.step
        bias_BR = places_seen(state.seen_BT, state.step, reach)

        def block(number: tf.Tensor, x_B1D: tf.Tensor, cache: Cache) -> tuple[Any, ...]:
            weights = self._weights.blocks.at(number)
            query, key, value = self._heads(weights, x_B1D)
            cache = remember(cache, key, value, (number, place), jit=self._jit)
            x_B1D += weights.out(_merged(look_up(cache, number, query, bias_BR)))
            return number + 1, x_B1D + weights.mlp(x_B1D), cache

        return _each_block(self._config.layers, block, x_B1D, state.cache)

    def _heads(self, weights: BlockWeights, x_BTD: tf.Tensor) -> list[tf.Tensor]:
        """Query, key and value, each (B, H, T, C)."""
        parts = tf.split(weights.qkv(normal(x_BTD)), 3, -1)
        return [_split(part, self._config.heads) for part in parts]


def _each_block(blocks: int, block: Any, x_BTD: tf.Tensor, cache: Cache) -> tuple[tf.Tensor, Cache]:
    """A loop over the stack, because a block taken from it by number is widened at its use."""
    _, x_BTD, cache = tf.while_loop(
        lambda number, _x, _cache: number < blocks, block, (tf.constant(0), x_BTD, cache)
    )
    return x_BTD, cache


def _split(x_BTD: tf.Tensor, heads: int) -> tf.Tensor:
    batch, time, width = x_BTD.shape
    return tf.ensure_shape(split_heads(x_BTD, heads), [batch, heads, time, width // heads])


def _merged(x_BHTC: tf.Tensor) -> tf.Tensor:
    batch, heads, time, size = x_BHTC.shape
    return tf.ensure_shape(merge_heads(x_BHTC), [batch, time, heads * size])


def _between(state: State, first: int, end: int) -> Spoken:
    return Spoken(
        code_BN=state.code_BN[:, first:end],
        latent_BND=state.latent_BND[:, first:end],
        length_B=tf.clip_by_value(state.length_B - first, 0, end - first),
        stopped_B=state.stopped_B,
        logits_BNV=state.logits_BNV[:, first:end],
    )


def _rung(needed: int, ladder: tuple[int, ...], top: int) -> int:
    return min([top, *(rung for rung in ladder if needed <= rung < top)])


def _check_text(text: Sequence[int], config: GptConfig) -> None:
    if len(text) >= config.max_text_tokens:
        raise TextError(
            f"a text has {len(text)} tokens, the network reads up to {config.max_text_tokens - 1}",
            "split the text into sentences",
        )
    if any(not 0 <= token < config.text_tokens for token in text):
        raise TextError(
            f"a text has ids beyond the {config.text_tokens} of the network's vocabulary",
            "use the vocabulary that the network was trained with",
        )
