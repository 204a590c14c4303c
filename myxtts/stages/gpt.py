"""The GPT's stage: text and a voice in, the codec's codes to be foretold.

Legend: B batch, X text positions, Y audio positions.
"""

from collections.abc import Mapping

import tensorflow as tf

from myxtts.audio import codes_for_samples
from myxtts.batch import Tensors
from myxtts.cache import maker_of
from myxtts.codec import Codec
from myxtts.config import Config, GptStageConfig
from myxtts.devices import silent_moves
from myxtts.features import Extract, feature_extractor
from myxtts.gpt import Gpt, Logits, Sequence, gpt_loss, lay_out
from myxtts.layers import Dropout, Precision
from myxtts.learner import Lesson, Moment, Pictures, Variables
from myxtts.optimizer import Habits
from myxtts.stages.stage import LOSS, SHARE, Develop, Materials, habits_of, picked
from myxtts.stages.tuning import TUNED, adapter_of, load_start, tokens_of
from myxtts.weights import load_weights, named_weights

FRAMES_PER_CODE = 4
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
        self._codecs: dict[str, Codec] = {}

    @property
    def habits(self) -> Habits:
        """How its optimizer works."""
        betas = self._config.stages.gpt.betas
        habits = habits_of(self._config.training, betas, self._precision)
        return habits._replace(learning=TUNED) if self._config.training.lora_rank else habits

    @property
    def steps(self) -> int | None:
        """How long it learns, where its own settings say."""
        return self._config.stages.gpt.steps

    @property
    def rate(self) -> float:
        """Its highest learning rate, where no other is named."""
        return self._config.stages.gpt.lr

    def features(self, device: str, *, judging: bool = False) -> Extract:
        """Codes, and the mel of the slice that conditions."""
        whole = feature_extractor(
            self._config.data,
            self._config.training.seed,
            self._materials.mel_stats_M,
            self.codec(device).encode,
            judging=judging,
        )
        return lambda tensors, number: picked(whole(tensors, number), *NEEDED)

    @property
    def codes_maker(self) -> str:
        """Of the frozen codec's file and settings, and of what its mels are divided by."""
        settings = self._config.model.codec.model_dump(mode="json")
        materials = self._materials
        return maker_of(materials.weights["codec"], settings, materials.mel_stats_M)

    def codes(self, device: str) -> Extract:
        """Those that `features` has among the rest, in batches of the same shape bit for bit."""
        data, seed = self._config.data, self._config.training.seed
        stats, encode = self._materials.mel_stats_M, self.codec(device).encode
        whole = feature_extractor(data, seed, stats, encode, judging=True)
        return lambda tensors, number: picked(whole(tensors, number), "codes")

    def beside_codes(self, device: str, *, judging: bool = False) -> Extract:
        """The mel of the slice that conditions; no codec is loaded."""
        del device
        data, seed = self._config.data, self._config.training.seed
        whole = feature_extractor(data, seed, self._materials.mel_stats_M, judging=judging)
        return lambda tensors, number: picked(whole(tensors, number), *NEEDED)

    def let_go(self) -> None:
        """Its memory is free when the programs that use it are gone."""
        self._codecs.clear()

    def mels(self, device: str) -> Develop:
        """The frozen codec tells both rows of codes."""
        decode = self.codec(device).decode

        def developed(pictures: Pictures) -> Pictures:
            return pictures._replace(real=decode(pictures.real), made=decode(pictures.made))

        return developed

    def codec(self, device: str) -> Codec:
        """The frozen codec on a device; one serves all programs there."""
        if device not in self._codecs:
            # Pictures may want one in the middle of a run, where moves are explicit.
            with silent_moves(), tf.device(device):
                codec = Codec(self._config.model.codec)
                self.fill(codec)
            self._codecs[device] = codec
        return self._codecs[device]

    def fill(self, codec: Codec) -> None:
        """Gives the codec the weights that the stage before it made."""
        load_weights(codec, self._materials.weights["codec"])

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
        return GptStudent(gpt, self._config.stages.gpt, self._materials.languages)


class GptStudent:
    """A GPT that learns."""

    def __init__(
        self, gpt: Gpt, settings: GptStageConfig, languages: Mapping[str, int] | None = None
    ) -> None:
        self.gpt = gpt
        self._settings = settings
        self._languages = languages or {}

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

    def pictures(self, features: Tensors) -> Pictures:
        """The codes, and what it holds for likeliest at each place, told all real ones before."""
        sequence = sequence_of(self.gpt, features)
        logits = self.gpt(self.gpt.voice(features["conditioning"]), sequence)
        real_BN = features["codes"]
        # The position before a code says it; start and stop are no codes that can be heard.
        likely_BNK = logits.audio_BYV[:, : real_BN.shape[1], : self.gpt.config.audio_start]
        frames_B = codes_for_samples(features["samples"]) * FRAMES_PER_CODE
        return Pictures(real_BN, tf.argmax(likely_BNK, -1), frames_B)

    def _lesson(self, features: Tensors, dropout: Dropout | None, *, voice: bool) -> Lesson:
        sequence = sequence_of(self.gpt, features)
        logits = self.gpt(self.gpt.voice(features["conditioning"]), sequence, dropout=dropout)
        slice_B2 = tf.stack([features["conditioning_from"], features["conditioning_to"]], 1)
        loss = gpt_loss(
            logits.text_BXV,
            logits.audio_BYV,
            sequence,
            slice_B2,
            self._settings.ignored if voice else "nothing",
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
