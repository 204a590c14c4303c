"""A run for TensorBoard: event files in the run's folder, for `tensorboard --logdir runs`.

    with open_board(run.folder, first_step) as board:
        board.scalars(step, values)                  # values by their tags, as they are
        board.verdict(step, verdict, data_busy)      # busy/*, waits/*, audio_rate, step_seconds
        board.validation(step, values)               # validation/*
        board.mels(step, "mel/clip-17", real_TM, made_TM)
        board.audio(step, "audio/clip-17", wave_S, rate)

Tags that the trainer gives: loss/*, lr, gradient_norm, codes/used, codes/perplexity.
No tensor comes here and no operation runs, so nothing waits for a device or lands on one: what
is given are floats and NumPy arrays. Every call hands its event to the system before it
returns, so a killed run keeps all of them. A run that goes on in its old folder begins a new
file, which takes back what the old ones hold from `first_step` on.
Legend: T frames, M mels, S samples.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorboard.plugins.audio import metadata

from myxtts.errors import UserError
from myxtts.telemetry.verdict import Verdict
from myxtts.view.pictures import mel_pair, png_bytes, wav_bytes

Floats = NDArray[np.floating]

PREFIX = "events.out.tfevents."
"""How TensorBoard knows event files; it reads a folder's in the order of their names."""
FORMAT = "brain.Event:2"
BLOBS = 3
"""DATA_CLASS_BLOB_SEQUENCE: files rather than numbers."""

_Event = tf.compat.v1.Event
_Summary = tf.compat.v1.Summary
_SessionLog = tf.compat.v1.SessionLog


class Board:
    """Writes one run's events."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _told(path):
            self._file = tf.io.TFRecordWriter(str(path))
        self._write(_Event(wall_time=time.time(), file_version=FORMAT))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes numbers by their tags."""
        for tag, value in values.items():
            _refuse_tensor(tag, value, (int, float, np.number))
        self._add(step, [_Summary.Value(tag=t, simple_value=v) for t, v in values.items()])

    def verdict(self, step: int, verdict: Verdict, data_busy: float | None = None) -> None:
        """Writes a window's speed and what held it back; `data_busy` is a share of the time."""
        values = {
            "busy/model": verdict.busy,
            "audio_rate": verdict.audio_rate,
            "step_seconds": verdict.step_seconds,
            **{f"waits/{cause}": share for cause, share in verdict.waits.items()},
        }
        known = {} if data_busy is None else {"busy/data": data_busy}
        self.scalars(step, values | known)

    def validation(self, step: int, values: Mapping[str, float]) -> None:
        """Writes what the clips that only judge say."""
        self.scalars(step, {f"validation/{name}": value for name, value in values.items()})

    def mels(self, step: int, tag: str, real_TM: Floats, made_TM: Floats) -> None:
        """Writes the picture of a real mel above a generated one."""
        _refuse_tensor(tag, real_TM, (np.ndarray,))
        _refuse_tensor(tag, made_TM, (np.ndarray,))
        picture_HWC = mel_pair(real_TM, made_TM)
        height, width, colours = picture_HWC.shape
        image = _Summary.Image(
            height=height,
            width=width,
            colorspace=colours,
            encoded_image_string=png_bytes(picture_HWC),
        )
        self._add(step, [_Summary.Value(tag=tag, image=image)])

    def audio(self, step: int, tag: str, wave_S: Floats, rate: int) -> None:
        """Writes sound between -1 and 1, of `rate` samples a second."""
        _refuse_tensor(tag, wave_S, (np.ndarray,))
        # A tensor with its kind: of the older form a browser is not told that it is WAV.
        sound = tf.make_tensor_proto([[wav_bytes(wave_S, rate), b""]])
        self._add(step, [_Summary.Value(tag=tag, tensor=sound, metadata=_wav_metadata())])

    def forget_from(self, step: int) -> None:
        """Takes back what older files of the folder hold from this step on."""
        log = _SessionLog(status=_SessionLog.START)
        self._write(_Event(wall_time=time.time(), step=step, session_log=log))

    def close(self) -> None:
        """Closes the file."""
        with _told(self._path):
            self._file.close()

    def _add(self, step: int, values: list[Any]) -> None:
        summary = _Summary(value=values)
        self._write(_Event(wall_time=time.time(), step=step, summary=summary))

    def _write(self, event: Any) -> None:
        with _told(self._path):
            self._file.write(event.SerializeToString())
            self._file.flush()


def _wav_metadata() -> Any:
    kind = metadata.create_summary_metadata("", "", metadata.Encoding.Value("WAV"))
    # TensorBoard brings TensorFlow's messages as classes of its own: the bytes are the same.
    told = tf.compat.v1.SummaryMetadata.FromString(kind.SerializeToString())
    told.data_class = BLOBS
    return told


@contextlib.contextmanager
def open_board(folder: Path, first_step: int) -> Iterator[Board]:
    """A board in a run's folder, whose first event will be that of `first_step`."""
    older = [path.name.removeprefix(PREFIX) for path in folder.glob(f"{PREFIX}*")]
    # Later than every older file even where the clock was set back or two begin in one second.
    stamp = max([int(time.time()), *(int(name) + 1 for name in older if name.isdecimal())])
    board = Board(folder / f"{PREFIX}{stamp:010}")
    try:
        if older:
            board.forget_from(first_step)
        yield board
    finally:
        board.close()


def _refuse_tensor(tag: str, value: object, kinds: tuple[type, ...]) -> None:
    """Reading a tensor here would wait for its device behind the loop's back."""
    if not isinstance(value, kinds):
        raise TypeError(f"{tag} is a {type(value).__name__}: a board takes what is on the host")


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except tf.errors.OpError as error:
        raise UserError(
            f"the TensorBoard file {path} cannot be written ({error.message})",
            "free some space, or name a folder that can be written: telemetry.runs=FOLDER",
        ) from error
