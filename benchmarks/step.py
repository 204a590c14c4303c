"""A training step of the GPT by the learner that training uses, on made-up clips.

Legend: B batch, T text, M codes, F frames, A mels.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from myxtts.audio import SAMPLES_PER_CODE
from myxtts.batch import Batch, Tensors
from myxtts.config import Config, GptConfig
from myxtts.layers import Precision
from myxtts.learner import At, Learner, Moment, Settings
from myxtts.pipeline import Program
from myxtts.stages.gpt import GptStage
from myxtts.stages.stage import Materials

MELS = 80


class Lengths(NamedTuple):
    """How much one batch holds."""

    batch: int = 8
    text: int = 64
    codes: int = 150
    frames: int = 517
    """Of the mel that the voice is heard in: 6 s."""


def made_up_clips(gpt: GptConfig, lengths: Lengths) -> Tensors:
    """Random ids and a mel of noise, all of the same length: what the data device gives."""
    rows, codes = lengths.batch, lengths.codes
    return {
        "weights": tf.ones([rows]),
        "samples": tf.fill([rows], tf.constant(codes * SAMPLES_PER_CODE, tf.int64)),
        "codes": tf.random.uniform([rows, codes], 0, gpt.audio_start, tf.int32, seed=1),
        "text": tf.random.uniform([rows, lengths.text], 3, gpt.text_tokens, tf.int32, seed=2),
        "text_tokens": tf.fill([rows], lengths.text),
        "conditioning": tf.random.normal([rows, lengths.frames, MELS], seed=3),
        "conditioning_from": tf.zeros([rows], tf.int64),
        "conditioning_to": tf.fill([rows], tf.constant(codes * SAMPLES_PER_CODE, tf.int64)),
    }


class TrainingStep:
    """One device's learner, and its parts where they are wanted by themselves."""

    def __init__(
        self,
        config: Config,
        device: str,
        lengths: Lengths,
        *,
        jit: bool = False,
        precision: Precision = "float32",
    ) -> None:
        stage = GptStage(config, _NOTHING, precision)
        self._learner = Learner(stage.student, [device], Settings(stage.habits, 0, jit))
        self._copy = self._learner.copies[0]
        self._number = 0
        with tf.device(device):
            self._clips = made_up_clips(config.model.gpt, lengths)
        self._forward = Program(self._loss, device, jit=jit, name="forward")

    def __call__(self) -> float:
        """One step, with another key for its dropout; the loss is read, as the log does."""
        self._number += 1
        return float(self._learner([self._hands()], _AT)["loss"])

    def forward(self) -> float:
        """The loss alone, with dropout all the same."""
        moment = self._copy.moment(self._number, _AT)
        return float(self._forward(self._clips, moment))

    def gradients(self) -> float:
        """Forward and backward, and no update."""
        return float(self._learner.try_out(self._hands())[0])

    def _hands(self) -> tuple[Batch, ...]:
        return (Batch(self._number, (), self._clips),)

    def _loss(self, clips: Tensors, moment: Moment) -> tf.Tensor:
        moment = moment._replace(key=tf.cast(moment.key, tf.int32))
        return self._copy.student.learn(clips, moment).scalars["loss"]


_NOTHING = Materials(np.ones(MELS, np.float32))
_AT = At(step=1, share=0.0, rate=5e-6)
