"""Prepared clips, read where they lie: 16-bit shards mapped into memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from myxtts.plan import CODE, Table
from myxtts.reader.mapping import map_shards
from myxtts.reader.rows import Numbers, Slices, Values, pad_rows, slices


@dataclass(frozen=True)
class Clips:
    """Where each clip's samples lie."""

    ids: Sequence[str]
    shard: Values
    """Which of the shards holds the clip."""
    offset: Values
    """Samples before the clip in its shard."""
    samples: Values
    shards: tuple[Path, ...]
    grain: int = 1
    """Clips begin at multiples of so many samples, with zeros up to there; 32 spare a copy."""


class ShardSource:
    """Mapped shards, held as long as this lives."""

    def __init__(self, clips: Clips) -> None:
        if CODE % clips.grain:
            raise ValueError(f"a grain of {clips.grain} samples does not divide a code's {CODE}")
        self.ids = clips.ids
        self.samples = clips.samples
        # To the end of the last grain, so that a clip and the zeros behind it are one slice.
        self._lengths = -(-clips.samples.astype(np.int64) // clips.grain) * clips.grain
        needed = np.zeros(len(clips.shards), np.int64)
        np.maximum.at(needed, clips.shard, clips.offset + self._lengths)
        self._pcm, begins = map_shards(clips.shards, needed.tolist())
        self._begins: Numbers = begins[clips.shard] + clips.offset

    def inputs(self, table: Table, tops_N: Numbers, rows_N: Numbers) -> Slices:
        """What the graph needs for each batch."""
        return slices(table.clips, tops_N, rows_N, self._begins, self._lengths)

    def read(self, taken: Slices, top: tf.Tensor) -> tf.Tensor:
        """One batch's samples, in the graph."""
        return pad_rows(self._pcm, taken, top)

    def explain(self, error: Exception, clips: Values) -> Exception:
        """Memory gives no reading errors."""
        del clips
        return error
