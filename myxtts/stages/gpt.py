"""The GPT's stage: text and a voice in, the codec's codes to be foretold.

Legend: B batch, X text positions, Y audio positions.
"""

from collections.abc import Mapping

import tensorflow as tf

from myxtts.batch import Tensors
from myxtts.codec import Codec
from myxtts.config import Config
from myxtts.features import Extract, feature_extractor
from myxtts.gpt import Gpt, Logits, Sequence, gpt_loss, lay_out
from myxtts.layers import Dropout, Precision
from myxtts.learner import Lesson, Moment, Variables
from myxtts.optimizer import Habits
from myxtts.stages.stage import LOSS, SHARE, Materials, habits_of, picked
from myxtts.stages.tuning import TUNED, adapter_of, load_start, tokens_of
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
        habits = habits_of(self._config.training, betas, self._precision)
        return habits._replace(learning=TUNED) if self._config.training.lora_rank else habits

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
        training, start = self._config.training, self._materials.start
        tokens = self._config.model.gpt.text_tokens
        with tf.device(device):
            gpt = Gpt(
                self._config.model.gpt,
                self._precision,
                recompute=training.recompute,
                adapter=adapter_of(training),
                added=tokens - tokens_of(start) if start else 0,
            )
            if start:
                load_start(gpt, start, training.seed)
        return GptStudent(gpt, self._config, self._materials.languages)


class GptStudent:
    """A GPT that learns."""

    def __init__(
        self, gpt: Gpt, config: Config, languages: Mapping[str, int] | None = None
    ) -> None:
        self.gpt = gpt
        self._languages = languages or {}
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
        if not voice:
            scalars |= self._by_language(features, logits, sequence)
        return Lesson({"gpt": whole}, scalars, {}, {}, tf.reduce_sum(features["weights"]))

    def _by_language(
        self, features: Tensors, logits: Logits, sequence: Sequence
    ) -> dict[str, tf.Tensor]:
        """Each language's share of the clips, and its loss times that: as such both average."""
        found, clips = {}, tf.reduce_sum(features["weights"])
        for language, tag in self._languages.items():
            rows_B = features["text"][:, 0] == tag
            counts_B = tf.cast(rows_B, tf.int32)
            theirs = sequence._replace(
                text_count_B=sequence.text_count_B * counts_B,
                audio_count_B=sequence.audio_count_B * counts_B,
            )
            loss = gpt_loss(logits.text_BXV, logits.audio_BYV, theirs)
            own = tf.reduce_sum(features["weights"] * tf.cast(rows_B, tf.float32))
            share = tf.math.divide_no_nan(own, clips)
            found[SHARE + language] = share
            found[LOSS + language] = share * (self._settings.text_weight * loss.text + loss.audio)
        return found


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
