"""Made-up clips and texts, where there are none: noise of one length, tokens without a meaning.

Legend: B batch, N batches, R rows of the largest batch, S samples.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from myxtts.audio import CODEC_HZ, SAMPLES_PER_CODE
from myxtts.config import Config, GptConfig
from myxtts.plan import NO_CLIP, Table, make_plan
from myxtts.reader import Reader, Texts
from myxtts.reader.rows import Numbers, Values

TOKENS_A_SECOND = 6
"""Of made-up text: 15 letters are read in a second, and a token has two or three."""
BATCHES = 8
"""Batches of noise in an epoch."""
LOUDEST = 8000


class _Picked(NamedTuple):
    clips: Values
    """[N, R]"""
    rows: Numbers
    """[N]"""


class NoiseSource:
    """Clips of one length; each is a function of the seed and its own number."""

    def __init__(self, clips: int, seconds: float, seed: int) -> None:
        # Whole codes, as in a bucket.
        codes = max(1, round(seconds * CODEC_HZ / SAMPLES_PER_CODE))
        self.ids: Sequence[str] = [f"noise-{clip}" for clip in range(clips)]
        self.samples: Values = np.full(clips, codes * SAMPLES_PER_CODE, np.int64)
        self._seed = seed

    def inputs(self, table: Table, tops_N: Numbers, rows_N: Numbers) -> _Picked:
        """What the graph needs for each batch."""
        del tops_N
        return _Picked(table.clips, rows_N)

    def read(self, picked: _Picked, top: tf.Tensor) -> tf.Tensor:
        """One batch's samples, in the graph."""
        return tf.map_fn(
            lambda clip: self._made(clip, top),
            picked.clips[: picked.rows],
            fn_output_signature=tf.TensorSpec([None], tf.int16),
        )

    def explain(self, error: Exception, clips: Values) -> Exception:
        """Noise gives no reading errors."""
        del clips
        return error

    def _made(self, clip: tf.Tensor, top: tf.Tensor) -> tf.Tensor:
        seed = tf.stack([tf.constant(self._seed, tf.int64), tf.cast(clip, tf.int64)])
        wave_S = tf.random.stateless_uniform([top], seed, -LOUDEST, LOUDEST, tf.int32)
        return tf.cast(tf.where(clip == NO_CLIP, 0, wave_S), tf.int16)


def open_noise(config: Config, seconds: float, devices: int) -> Reader:
    """What reads noise in batches of the size that is asked for, over all model devices."""
    rows = config.data.batch_size * devices
    source = NoiseSource(BATCHES * rows, seconds, config.training.seed)
    plan = make_plan(source.samples, config.data, config.training.seed, devices)
    return Reader(source, plan)


def made_up_texts(samples: Values, gpt: GptConfig, seed: int) -> Texts:
    """For each clip as many tokens as speech of its length has, drawn from the whole vocabulary."""
    wanted = np.ceil(samples / CODEC_HZ * TOKENS_A_SECOND).astype(np.int64)
    lengths = np.clip(wanted, 1, gpt.max_text_tokens)
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    random = np.random.default_rng(seed)
    return Texts(random.integers(0, gpt.text_tokens, splits[-1], np.int32), splits)
