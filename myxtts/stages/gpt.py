"""The GPT's stage: text and a voice in, the codec's codes to be foretold.

Legend: B batch, X text positions, Y audio positions.
"""

from collections.abc import Mapping

import tensorflow as tf

from myxtts.batch import Tensors
from myxtts.codec import Codec
from myxtts.config import Config
from myxtts.features import Extract, feature_extractor
from myxtts.gpt import Gpt, Sequence, gpt_loss, lay_out
from myxtts.layers import Dropout, Precision
from myxtts.learner import Lesson, Moment, Variables
from myxtts.optimizer import Habits
from myxtts.stages.stage import Materials, habits_of, picked
from myxtts.weights import load_weights, named_weights

NEEDED = (
    *("weights", "samples", "codes", "text", "text_tokens"),
    *("conditioning", "conditioning_from", "conditioning_to"),
)


class GptStage:
    """The codec is frozen and lives on the data device; the GPT learns on the model device."""

    name = "gpt"
    part = "gpt"

    def __init__(self, config: Config, materials: Materials, precision: Precision) -> None:
        self._config = config
        self._materials = materials
        self._precision = precision

    @property
    def habits(self) -> Habits:
        """How its optimizer works."""
        betas = self._config.stages.gpt.betas
        return habits_of(self._config.training, betas, self._precision)

    def features(self, device: str, *, judging: bool = False) -> Extract:
        """Codes, and the mel of the slice that conditions."""
        with tf.device(device):
            codec = Codec(self._config.model.codec)
            load_weights(codec, self._materials.weights["codec"])
        whole = feature_extractor(
            self._config.data,
            self._config.training.seed,
            self._materials.mel_stats_M,
            codec.encode,
            judging=judging,
        )
        return lambda tensors, number: picked(whole(tensors, number), *NEEDED)

    def student(self, device: str) -> "GptStudent":
        """The GPT, from what is there or from random numbers."""
        with tf.device(device):
            gpt = Gpt(
                self._config.model.gpt,
                self._precision,
                recompute=self._config.training.recompute,
            )
            if self._materials.start:
                load_weights(gpt, self._materials.start)
        return GptStudent(gpt, self._config)


class GptStudent:
    """A GPT that learns."""

    def __init__(self, gpt: Gpt, config: Config) -> None:
        self.gpt = gpt
        self._settings = config.stages.gpt

    @property
    def players(self) -> Mapping[str, Variables]:
        """One."""
        return {"gpt": named_weights(self.gpt)}

    @property
    def state(self) -> Variables:
        """None."""
        return {}

    def learn(self, features: Tensors, moment: Moment) -> Lesson:
        """Both losses, with dropout."""
        rate = self._settings.dropout
        return self._lesson(features, Dropout(rate, moment.key) if rate else None, voice=True)

    def absorb(self, means: Tensors, samples: Tensors, moment: Moment) -> None:
        """Nothing moves but by gradients."""

    def judge(self, features: Tensors) -> Lesson:
        """Every code counts, and nothing is dropped."""
        return self._lesson(features, None, voice=False)

    def _lesson(self, features: Tensors, dropout: Dropout | None, *, voice: bool) -> Lesson:
        sequence = sequence_of(self.gpt, features)
        logits = self.gpt(self.gpt.voice(features["conditioning"]), sequence, dropout=dropout)
        slice_B2 = tf.stack([features["conditioning_from"], features["conditioning_to"]], 1)
        own = self._settings.voice_from == "own" and voice
        loss = gpt_loss(
            logits.text_BXV,
            logits.audio_BYV,
            sequence,
            slice_B2,
            self._settings.ignored if own else "nothing",
        )
        whole = self._settings.text_weight * loss.text + loss.audio
        scalars = {"loss": whole, "loss_text": loss.text, "loss_audio": loss.audio}
        return Lesson({"gpt": whole}, scalars, {}, {}, tf.reduce_sum(features["weights"]))


def sequence_of(gpt: Gpt, features: Tensors) -> Sequence:
    """What is read and what is to be said; a row without a clip has no target at all."""
    sequence = lay_out(
        gpt.config,
        features["text"],
        features["text_tokens"],
        features["codes"],
        features["samples"],
    )
    clips_B = tf.cast(features["weights"] > 0, tf.int32)
    return sequence._replace(
        text_count_B=sequence.text_count_B * clips_B,
        audio_count_B=sequence.audio_count_B * clips_B,
    )
