"""Unprepared clips: a folder's own 16-bit mono WAV files, decoded by TensorFlow.

The headers are read once, before the first batch: a file that TensorFlow cannot decode is
named then, and not in the middle of an epoch.
"""

import wave
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from myxtts.errors import UserError
from myxtts.plan import NO_CLIP, Table
from myxtts.reader.rows import Numbers, Values

RATE = 22050
"""Samples in a second."""
FULL_SCALE = 32768.0

REMEDIES = (
    f"convert the clips (ffmpeg -i IN -ar {RATE} -ac 1 -c:a pcm_s16le OUT.wav); or let our own "
    "decoder read 24-bit, float, FLAC and MP3 (myxtts prepare DATA --out DIR; tensorflow-io, which "
    "once did, stopped at TensorFlow 2.17); or write data.use_tf_native_loading=false"
)


class NativeLoadingError(UserError):
    """A clip that TensorFlow's own decoder cannot read, or reads as something else."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"TF-native loading failed: {problem}", REMEDIES)


class Wavs(NamedTuple):
    """WAV files whose headers have been read."""

    ids: Sequence[str]
    paths: Sequence[Path]
    samples: Values


class _Picked(NamedTuple):
    clips: Values
    """[N, R]"""
    rows: Numbers
    """[N]"""


class WavSource:
    """WAV files, opened and decoded anew for each batch."""

    def __init__(self, wavs: Wavs) -> None:
        self.ids = wavs.ids
        self.samples = wavs.samples
        self._wavs = wavs
        with tf.device("/CPU:0"):
            self._paths = tf.constant([str(path) for path in wavs.paths])
            self._lengths = tf.constant(wavs.samples, tf.int64)

    def inputs(self, table: Table, tops_N: Numbers, rows_N: Numbers) -> _Picked:
        """What the graph needs for each batch."""
        del tops_N
        return _Picked(table.clips, rows_N)

    def read(self, picked: _Picked, top: tf.Tensor) -> tf.Tensor:
        """One batch's samples, in the graph."""
        return tf.map_fn(
            lambda clip: tf.cond(
                clip == NO_CLIP,
                lambda: tf.zeros([top], tf.int16),
                lambda: self._read_one(clip, top),
            ),
            picked.clips[: picked.rows],
            fn_output_signature=tf.TensorSpec([None], tf.int16),
        )

    def explain(self, error: Exception, clips: Values) -> Exception:
        """Decodes the batch's clips one by one, to name the one that failed."""
        for clip in clips[clips != NO_CLIP]:
            problem = self._problem(int(clip))
            if problem:
                return NativeLoadingError(_told(self.ids[clip], self._wavs.paths[clip], problem))
        return NativeLoadingError(str(error))  # The file is whole again, or was never the cause.

    def _read_one(self, clip: tf.Tensor, top: tf.Tensor) -> tf.Tensor:
        length = tf.gather(self._lengths, clip)
        wave_SC, rate = tf.audio.decode_wav(tf.io.read_file(tf.gather(self._paths, clip)))
        as_listed = tf.reduce_all(
            tf.equal(tf.shape(wave_SC, tf.int64), tf.stack([length, 1])) & tf.equal(rate, RATE)
        )
        with tf.control_dependencies([tf.debugging.Assert(as_listed, [clip])]):
            # Exact: the decoder has divided 16-bit numbers by a power of two.
            pcm_S = tf.cast(tf.reshape(wave_SC, [-1]) * FULL_SCALE, tf.int16)
            return tf.pad(pcm_S, [[0, top - length]])

    def _problem(self, clip: int) -> str:
        path, listed = self._wavs.paths[clip], int(self.samples[clip])
        samples, problem = _header(path)
        if problem or samples != listed:
            return problem or f"{samples} samples, and {listed} when its header was read first"
        try:
            tf.audio.decode_wav(tf.io.read_file(str(path)))
        except tf.errors.OpError as error:
            return str(error.message)
        return ""


def list_wavs(ids: Sequence[str], paths: Sequence[Path]) -> Wavs:
    """Reads every header; refuses what TensorFlow would not decode to what the network hears."""
    headers = [_header(path) for path in paths]
    bad = [index for index, (_samples, problem) in enumerate(headers) if problem]
    if bad:
        first = bad[0]
        others = f"; and {len(bad) - 1} more of {len(paths)} clips" if len(bad) > 1 else ""
        raise NativeLoadingError(_told(ids[first], paths[first], headers[first][1]) + others)
    return Wavs(ids, paths, np.array([samples for samples, _problem in headers], np.int64))


def _header(path: Path) -> tuple[int, str]:
    """The clip's samples, and what is wrong with the file."""
    try:
        size = path.stat().st_size
        with wave.open(str(path)) as file:
            rate, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
            samples = file.getnframes()
    except (OSError, EOFError, wave.Error) as error:
        return 0, f"no 16-bit WAV file ({error or 'its header is cut'})"
    if (rate, width, channels) != (RATE, 2, 1):
        found = f"{8 * width}-bit, {rate} Hz, {channels} channel{'s' * (channels > 1)}"
        return 0, f"{found}; it takes 16-bit, {RATE} Hz, 1 channel"
    if not 0 < samples * width < size:
        return 0, f"its header speaks of {samples} samples, and the file has {size} bytes"
    return samples, ""


def _told(clip: str, path: Path, problem: str) -> str:
    return f"clip {clip} ({path}): {problem}"
