"""Made-up clips, where there are none yet: batches as the reader gives them, endless.

Legend: B batch, S samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from myxtts.audio import CODEC_HZ, SAMPLES_PER_CODE
from myxtts.batch import Batch
from myxtts.config import DataConfig
from myxtts.pipeline import RunAhead, run_ahead
from myxtts.reader import clips_on_data_device
from myxtts.telemetry.record import Recorder


@dataclass(frozen=True)
class Noise:
    """Clips of one length, each batch a function of the seed and its number."""

    rows: int
    """Clips in a batch, over all model devices."""
    clip_seconds: float
    settings: DataConfig
    seed: int = 0
    shapes: int = 1

    @property
    def samples(self) -> int:
        """Samples in one clip: whole codes, as in a bucket."""
        return max(1, round(self.clip_seconds * CODEC_HZ / SAMPLES_PER_CODE)) * SAMPLES_PER_CODE

    def seconds(self, _number: int) -> float:
        """The sound in a batch."""
        return self.rows * self.samples / CODEC_HZ

    def open(self, device: str, _steps: int, recorder: Recorder) -> RunAhead[Batch]:
        """Batches on `device`, made ready before it asks for them."""
        ahead = max(1, clips_on_data_device(self.settings) // self.rows)
        return run_ahead(self.read(device, recorder), ahead, recorder, thread="reader")

    def read(self, device: str, recorder: Recorder) -> Iterator[Batch]:
        """The same without a thread."""
        number = 0
        names = tuple(f"noise-{row}" for row in range(self.rows))
        while True:
            with recorder.span("read", batch=number):
                random = np.random.default_rng((self.seed, number))
                wave_BS = random.integers(-8000, 8000, (self.rows, self.samples), np.int16)
                with tf.device(device):
                    tensors = {
                        "pcm": tf.constant(wave_BS),
                        "samples": tf.fill([self.rows], tf.constant(self.samples, tf.int64)),
                        "weights": tf.ones([self.rows]),
                    }
            yield Batch(number, names, tensors)
            number += 1
