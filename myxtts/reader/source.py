"""What the two kinds of clips have in common, and which of them the settings ask for."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf

from myxtts.config import DataConfig
from myxtts.plan import Table
from myxtts.reader.rows import Numbers, Values
from myxtts.reader.shards import Clips, ShardSource
from myxtts.reader.wavs import Wavs, WavSource


class Source(Protocol):
    """Clips by their index, read in the graph of a data set."""

    ids: Sequence[str]
    samples: Values

    def inputs(self, table: Table, tops_N: Numbers, rows_N: Numbers) -> Any:
        """What the graph needs for each batch, as a nest of arrays."""

    def read(self, taken: Any, top: tf.Tensor) -> tf.Tensor:
        """One batch's samples, int16, in the graph."""

    def explain(self, error: Exception, clips: Values) -> Exception:
        """The error to raise instead of TensorFlow's."""


def open_source(
    data: DataConfig, prepared: Callable[[], Clips], wavs: Callable[[], Wavs]
) -> Source:
    """Opens prepared shards, or the folder's own WAV files; lists only what it opens."""
    return WavSource(wavs()) if data.use_tf_native_loading else ShardSource(prepared())
