"""Training in the form that this system replaces: Python for each clip, each operation by itself.

Clips are read and turned into mels by NumPy inside `tf.numpy_function`, as many at a time as the
settings have workers, padded to the longest of their batch and prefetched; codes, gradients and
update are eager. The network, the clips, the batch size and the optimizer are the arrangements'.
Legend: S samples, T frames, W window, M mels, B batch.
"""

import time
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.audio import CONDITIONING, DVAE, FrontEnd
from myxtts.audio.filters import filterbank, window
from myxtts.audio.slices import LONGEST, SHORTEST
from myxtts.config import Config
from myxtts.learner import Moment
from myxtts.learner.copies import gradients_of, joined
from myxtts.optimizer import AdamW, cut, squared_length
from myxtts.prepare import RATE
from myxtts.stages import GptStage
from myxtts.text import Tokenizer
from myxtts.train.legs import Clips

QUIETEST = 1e-5
NAMES = ("samples", "mel", "text", "text_tokens", "conditioning")
NAMES_OF_SLICES = ("conditioning_from", "conditioning_to")
KINDS = (tf.int64, tf.float32, tf.int64, tf.int64, tf.float32, tf.int64, tf.int64)
SHAPES: tuple[list[int | None], ...] = ([], [None, 80], [None], [], [None, 80], [], [])
RATE_OF_LEARNING = 1e-5

Floats = NDArray[np.float32]


class EagerLoop:
    """Learns from the same clips as the arrangements do."""

    def __init__(self, config: Config, stage: GptStage, clips: Clips, device: str) -> None:
        part = clips.parts[0]
        columns = {n: part.manifest.column(n)[part.rows] for n in ("shard", "offset", "samples")}
        self._shards = [np.memmap(path, np.int16, "r") for path in part.manifest.shard_paths]
        self._where = list(zip(*columns.values(), strict=True))
        tokenizer = clips.tokenizer or Tokenizer({})  # type: ignore[arg-type]
        texts = part.texts(config.text)
        self._texts = [np.array(tokenizer.encode(*pair), np.int64) for pair in texts]
        self._config, self._device = config, device
        self._codec, self._student = stage.codec(device), stage.student(device)
        with tf.device(device):
            self._weights = joined(self._student.players)
            self._optimizer = AdamW(self._weights, stage.habits)
        self._batches = iter(self._data_set())
        self._steps = 0
        self(1)

    def __call__(self, steps: int) -> tuple[float, float]:
        """Seconds of sound, and seconds."""
        begun, sound = time.perf_counter(), 0.0
        for _ in range(steps):
            sound += self._learn(next(self._batches))
        return sound, time.perf_counter() - begun

    def _data_set(self) -> tf.data.Dataset:
        with tf.device("/CPU:0"):
            order = np.random.default_rng(self._config.training.seed).permutation(len(self._texts))
            workers, rows = self._config.data.num_workers, self._config.data.batch_size
            return (
                tf.data.Dataset.from_tensor_slices(order)
                .repeat()
                .map(self._clip, workers)
                .padded_batch(rows, drop_remainder=True)
                .prefetch(self._config.data.prefetch_buffer_size)
            )

    def _clip(self, number: tf.Tensor) -> tuple[tf.Tensor, ...]:
        made = tf.numpy_function(self._features, [number], KINDS)
        for tensor, shape in zip(made, SHAPES, strict=True):
            tensor.set_shape(shape)
        return tuple(made)

    def _features(self, number: int) -> tuple[Any, ...]:
        """One clip, in Python."""
        shard, offset, samples = self._where[number]
        wave_S = self._shards[shard][offset : offset + samples].astype(np.float32) / 32768
        length = int(np.random.default_rng(number).integers(SHORTEST, LONGEST + 1))
        length = samples // 2 if samples < length else length
        voice_S = np.zeros(LONGEST, np.float32)
        voice_S[:length] = wave_S[:length]
        text = self._texts[number]
        about = (np.int64(len(text)), mel_of(voice_S, CONDITIONING), np.int64(0), np.int64(length))
        return np.int64(samples), mel_of(wave_S, DVAE), text, *about

    def _learn(self, batch: tuple[tf.Tensor, ...]) -> float:
        features = dict(zip((*NAMES, *NAMES_OF_SLICES), batch, strict=True))
        self._steps += 1
        with tf.device(self._device):
            features["codes"] = self._codec.encode(features.pop("mel"))
            features["weights"] = tf.ones([len(features["samples"])])
            key = tf.constant([0, self._steps], tf.int32)
            moment = Moment(key, tf.constant(self._steps, tf.int64), tf.constant(0.0))
            with tf.GradientTape() as tape:
                lesson = self._student.learn(features, moment)
            (loss,) = lesson.losses.values()
            found = gradients_of(tape, loss, self._weights)
            length = tf.sqrt(squared_length(list(found.values())))
            factor = cut(length, self._optimizer.habits.longest)
            self._optimizer.update(
                found, tf.constant(RATE_OF_LEARNING), dict.fromkeys(found, factor)
            )
            float(loss.numpy())
        return float(tf.reduce_sum(features["samples"]).numpy()) / RATE


def mel_of(wave_S: Floats, front: FrontEnd) -> Floats:
    """The log mel, frame by frame as `librosa.stft` makes them."""
    edge = front.window_length // 2
    ends_S = np.pad(wave_S, edge, mode="reflect")
    frames_TW = np.lib.stride_tricks.sliding_window_view(ends_S, front.window_length)[:: front.hop]
    spectrum_TF = np.fft.rfft(frames_TW * window(front), front.fft)
    filters_FM = filterbank(front)
    power_TM = np.abs(spectrum_TF[:, : len(filters_FM)]) ** 2 @ filters_FM
    return np.log(np.maximum(power_TM, QUIETEST)).astype(np.float32)
