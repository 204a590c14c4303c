"""The vocoder's stage: the frozen GPT's latents in, sound at 24 kHz out.

The data device does all that comes before the latents, with codec, GPT and speaker encoder; what
goes on to the model device are short pieces. There the vocoder and its discriminators learn.

Legend: B batch, L latents of a clip, M codes, W latents of a piece, N its samples at 24 kHz,
D width of the GPT, P vectors of the voice, X text positions, S width of the speaker vector.
"""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from myxtts.audio import SAMPLES_PER_CODE, length_mask, size_of, step_key, vocoder_mel
from myxtts.batch import Tensors
from myxtts.codec import Codec
from myxtts.config import Config
from myxtts.features import Extract, feature_extractor
from myxtts.gpt import Gpt, lay_out
from myxtts.layers import Precision
from myxtts.learner import Lesson, Moment, Pictures, Variables
from myxtts.optimizer import Habits
from myxtts.speaker import Speaker, clip_vectors
from myxtts.stages.stage import Materials, habits_of
from myxtts.vocoder import (
    Clips,
    Discriminators,
    Players,
    Vocoder,
    Windows,
    fixed_windows,
    losses,
    made_sound,
    play,
    random_windows,
)
from myxtts.weights import load_weights, named_weights

PIECE = ("latents", "wave", "first", "weights")
"""The names of a `Windows`' tensors on their way."""


class Frozen(NamedTuple):
    """What the data device hears clips with."""

    codec: Codec
    gpt: Gpt
    speaker: Speaker | None


class VocoderStage:
    """Codec and GPT are frozen and live on the data device; the vocoder learns elsewhere."""

    name = "vocoder"
    part = "vocoder"

    def __init__(self, config: Config, materials: Materials, precision: Precision) -> None:
        self._config = config
        self._materials = materials
        self._precision = precision
        self._frozen: dict[str, Frozen] = {}

    @property
    def habits(self) -> Habits:
        """How its optimizer works."""
        betas = self._config.stages.vocoder.betas
        return habits_of(self._config.training, betas, self._precision)

    @property
    def steps(self) -> int | None:
        """How long it learns, where its own settings say."""
        return self._config.stages.vocoder.steps

    @property
    def rate(self) -> float:
        """Its highest learning rate, where no other is named."""
        return self._config.stages.vocoder.lr

    @property
    def shortest(self) -> int:
        """Samples at 22.05 kHz that a clip must have to learn from it."""
        return self._config.stages.vocoder.window * SAMPLES_PER_CODE

    def features(self, device: str, *, judging: bool = False) -> Extract:
        """A piece of each clip: latents, their sound, and the clip's speaker vector."""
        frozen, config = self.frozen(device), self._config
        data, seed, window = config.data, config.training.seed, config.stages.vocoder.window
        stats_M, encode = self._materials.mel_stats_M, frozen.codec.encode
        whole = feature_extractor(data, seed, stats_M, encode, judging=judging, sound=True)

        def pieces(tensors: Tensors, number: tf.Tensor) -> Tensors:
            heard = whole(tensors, number)
            voice_BPD = frozen.gpt.voice(heard["conditioning"])
            clips = _clips(heard, latents_of(frozen.gpt, voice_BPD, heard))
            if judging:
                windows = fixed_windows(clips, window)
            else:
                windows = random_windows(clips, window, step_key(seed, number))
            width = config.model.speaker.width
            sound = clips.wave_BS, clips.samples_B
            speaker_BS = clip_vectors(frozen.speaker, *sound, voice_BPD, width)
            return {"speaker": speaker_BS, **dict(zip(PIECE, windows, strict=True))}

        return pieces

    def frozen(self, device: str) -> Frozen:
        """The networks that stay as they are, on a device; all programs there share them."""
        if device not in self._frozen:
            model, files = self._config.model, self._materials.weights
            with tf.device(device):
                codec, gpt = Codec(model.codec), Gpt(model.gpt, self._precision)
                load_weights(codec, files["codec"])
                load_weights(gpt, files["gpt"])
                self._frozen[device] = Frozen(codec, gpt, self._speaker())
        return self._frozen[device]

    def student(self, device: str) -> "VocoderStudent":
        """The vocoder, from what is there or from random numbers; discriminators from the latter.

        Beside them a speaker encoder, where the model has one: to hear whether the voice is kept.
        """
        model = self._config.model
        with tf.device(device):
            vocoder = Vocoder(
                model.vocoder,
                latent_width=model.gpt.width,
                speaker_width=model.speaker.width,
                precision=self._precision,
            )
            discriminators = Discriminators(model.discriminator, self._precision)
            if self._materials.start:
                load_weights(vocoder, self._materials.start)
            return VocoderStudent(Players(vocoder, discriminators, self._speaker()))

    def _speaker(self) -> Speaker | None:
        file = self._materials.weights.get("speaker")
        if file is None:
            return None
        speaker = Speaker(self._config.model.speaker)
        load_weights(speaker, file)
        return speaker


class VocoderStudent:
    """A vocoder that learns, and discriminators that learn from it."""

    def __init__(self, contest: Players) -> None:
        self._contest = contest

    @property
    def players(self) -> Mapping[str, Variables]:
        """Two."""
        return {
            "vocoder": named_weights(self._contest.vocoder),
            "discriminators": named_weights(self._contest.discriminators),
        }

    @property
    def state(self) -> Variables:
        """None."""
        return {}

    def learn(self, features: Tensors, moment: Moment) -> Lesson:
        """Both players' losses, from one pass."""
        del moment
        windows = _windows(features)
        told = play(self._contest, windows, features["speaker"])
        found = {"vocoder": told.vocoder, "discriminators": told.discriminators}
        scalars = {"loss": told.vocoder, **told.scalars}
        return Lesson(found, scalars, {}, {}, tf.reduce_sum(windows.weights_B))

    def absorb(self, means: Tensors, samples: Tensors, moment: Moment) -> None:
        """Nothing moves but by gradients."""

    def judge(self, features: Tensors) -> Lesson:
        """How far the mels are apart: the one loss that a discriminator's progress leaves alone."""
        windows = _windows(features)
        made_BN = made_sound(self._contest.vocoder, windows, features["speaker"])
        loss = losses.mel_loss(made_BN, windows.wave_BN, windows.weights_B)
        return Lesson({"vocoder": loss}, {"loss": loss}, {}, {}, tf.reduce_sum(windows.weights_B))

    def pictures(self, features: Tensors) -> Pictures:
        """Mels at 24 kHz of the real pieces, and of those that it makes."""
        windows = _windows(features)
        made_BN = made_sound(self._contest.vocoder, windows, features["speaker"])
        real, made = vocoder_mel(windows.wave_BN), vocoder_mel(made_BN)
        frames_B = tf.fill([size_of(real, 0)], tf.constant(size_of(real, 1), tf.int64))
        return Pictures(real, made, frames_B)


def latents_of(gpt: Gpt, voice_BPD: tf.Tensor, features: Tensors) -> tf.Tensor:
    """float32 (B, M, D): row i is the state that says code i, each clip's as when it is spoken.

    So a text's own stop is seen, which is hidden while the GPT learns; its padding is not.
    """
    sequence = lay_out(
        gpt.config,
        features["text"],
        features["text_tokens"],
        features["codes"],
        features["samples"],
    )
    # No row hears what comes after it: the stops that would be learned are left out.
    codes = size_of(features["codes"], 1)
    sequence = sequence._replace(audio_BY=sequence.audio_BY[:, :codes])
    rows, prefix = size_of(voice_BPD, 0), size_of(voice_BPD, 1)
    seen_BX = length_mask(sequence.text_count_B + 1, size_of(sequence.text_BX, 1))
    voice_BP, audio_BM = (tf.ones([rows, count], tf.bool) for count in (prefix, codes))
    inputs_BSD = gpt.inputs(voice_BPD, sequence.text_BX, sequence.audio_BY)
    hidden_BSD = gpt.hidden(inputs_BSD, tf.concat([voice_BP, seen_BX, audio_BM], 1))
    return tf.cast(gpt.parts(hidden_BSD, prefix, sequence)[1], tf.float32)


def _clips(heard: Tensors, latents_BLD: tf.Tensor) -> Clips:
    return Clips(latents_BLD, heard["sound"], heard["samples"], heard["weights"])


def _windows(features: Tensors) -> Windows:
    return Windows(*(features[name] for name in PIECE))
