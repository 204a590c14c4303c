"""The speaker encoder: sound to one vector that tells a voice from others (XTTS.md §9).

A residual network over bands and time with squeeze and excitation, then the mean and the spread
over time, as an attention weighs it. Legend: B batch, S samples, M mel bands, T time, C channels,
P channels and bands together, W width of the vector.
"""

import tensorflow as tf

from myxtts.audio import SPEAKER, frames_for_samples, length_mask, size_of
from myxtts.audio import speaker_features as features_of
from myxtts.audio import speaker_mel as mel_of
from myxtts.config import SpeakerConfig
from myxtts.layers import Linear, Network, Part, Precision
from myxtts.speaker.image import BatchNorm, ImageConvolution, mean_over_image, muted

BANDS = SPEAKER.mels // 8
"""Left of the mel after three halvings."""
ATTENTION_WIDTH = 128
SQUEEZE = 8
LEAST_VARIANCE = 1e-5
UNSEEN = -1e30  # Finite, so that no row has a NaN.


class Speaker(Network):
    """Sound at 16 kHz to a vector of unit length.

    Frozen: XTTS takes this network as it comes and only ever evaluates it. So no weight is
    trainable, and the batch norms go by their stored statistics; gradients reach the sound.
    """

    def __init__(self, config: SpeakerConfig, precision: Precision = "float32") -> None:
        super().__init__("speaker")
        filters = config.filters
        self.first = ImageConvolution(1, filters[0], "first", bias=True)
        self.first_norm = BatchNorm(filters[0], "first_norm")
        self.stages = [
            Stage(stage, filters[max(stage - 1, 0)], width, blocks)
            for stage, (width, blocks) in enumerate(zip(filters, config.blocks, strict=True))
        ]
        pooled = BANDS * filters[-1]
        self.attention_in = Linear(pooled, ATTENTION_WIDTH, "attention_in")
        self.attention_norm = BatchNorm(ATTENTION_WIDTH, "attention_norm")
        self.attention_out = Linear(ATTENTION_WIDTH, pooled, "attention_out")
        self.out = Linear(2 * pooled, config.width, "out")
        self.made(precision)
        self.autocast = False  # The mel is computed in float32.
        self.trainable = False

    def call(self, wave_BS: tf.Tensor, lengths_B: tf.Tensor | None = None) -> tf.Tensor:
        """float32 (B, W). With lengths each clip's vector is the one it has alone."""
        return tf.math.l2_normalize(self.unscaled(wave_BS, lengths_B), 1)

    def unscaled(self, wave_BS: tf.Tensor, lengths_B: tf.Tensor | None = None) -> tf.Tensor:
        """float32 (B, W), before it gets its unit length."""
        frames_B = None if lengths_B is None else frames_for_samples(lengths_B, SPEAKER.hop)
        features_BTM = features_of(mel_of(wave_BS, lengths_B), frames_B)
        x_BMT1 = tf.transpose(features_BTM, [0, 2, 1])[..., None]
        x_BMTC = self.first(tf.cast(x_BMT1, self.compute_dtype))
        x_BMTC = muted(self.first_norm(tf.nn.relu(x_BMTC)), frames_B)
        for stage in self.stages:
            x_BMTC, frames_B = stage(x_BMTC, frames_B)
        return tf.cast(self.out(self._pooled(x_BMTC, frames_B)), tf.float32)

    def _pooled(self, x_BMTC: tf.Tensor, frames_B: tf.Tensor | None) -> tf.Tensor:
        """(B, 2 P): mean and spread over time, in float32."""
        batch, time = size_of(x_BMTC, 0), size_of(x_BMTC, 2)
        # The bands of one channel lie side by side.
        x_BTCM = tf.transpose(x_BMTC, [0, 2, 3, 1])
        x_BTP = tf.reshape(x_BTCM, [batch, time, BANDS * x_BMTC.shape[3]])
        score_BTP = self.attention_norm(tf.nn.relu(self.attention_in(x_BTP)))
        score_BTP = tf.cast(self.attention_out(score_BTP), tf.float32)
        if frames_B is not None:
            score_BTP = tf.where(length_mask(frames_B, time)[..., None], score_BTP, UNSEEN)
        weight_BTP, wide_BTP = tf.nn.softmax(score_BTP, 1), tf.cast(x_BTP, tf.float32)
        mean_BP = tf.reduce_sum(weight_BTP * wide_BTP, 1)
        square_BP = tf.reduce_sum(weight_BTP * tf.square(wide_BTP), 1)
        spread_BP = tf.sqrt(tf.maximum(square_BP - tf.square(mean_BP), LEAST_VARIANCE))
        return tf.concat([mean_BP, spread_BP], 1)


class Stage(Part):
    """Blocks of one width; all stages but the first halve bands and time."""

    def __init__(self, stage: int, width_in: int, width: int, blocks: int) -> None:
        super().__init__(f"stage_{stage}")
        self._stride = 2 if stage else 1
        widths_in = [width_in, *[width] * (blocks - 1)]
        self.blocks = [
            Block(n, into, width, stride=1 if n else self._stride)
            for n, into in enumerate(widths_in)
        ]

    def call(
        self, x_BMTC: tf.Tensor, frames_B: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """What the stage makes of it, and how many frames of each clip are left."""
        if frames_B is not None:
            frames_B = (frames_B + self._stride - 1) // self._stride
        for block in self.blocks:
            x_BMTC = block(x_BMTC, frames_B)
        return x_BMTC, frames_B


class Block(Part):
    """Two convolutions, each channel weighed by what all of the clip holds in all of them."""

    def __init__(self, number: int, width_in: int, width: int, *, stride: int) -> None:
        super().__init__(f"block_{number}")
        self.conv_0 = ImageConvolution(width_in, width, "conv_0", stride=stride)
        self.norm_0 = BatchNorm(width, "norm_0")
        self.conv_1 = ImageConvolution(width, width, "conv_1")
        self.norm_1 = BatchNorm(width, "norm_1")
        self.squeeze = Linear(width, width // SQUEEZE, "squeeze")
        self.excite = Linear(width // SQUEEZE, width, "excite")
        self._shortens = stride > 1
        if self._shortens:
            self.shortcut = ImageConvolution(width_in, width, "shortcut", taps=1, stride=stride)
            self.shortcut_norm = BatchNorm(width, "shortcut_norm")

    def call(self, x_BMTC: tf.Tensor, frames_B: tf.Tensor | None) -> tf.Tensor:
        """`frames_B` are those of the result; what comes in is muted, and so is what goes out."""
        inner_BMTC = self.norm_0(tf.nn.relu(self.conv_0(x_BMTC)))  # The norm comes second.
        inner_BMTC = self.norm_1(self.conv_1(muted(inner_BMTC, frames_B)))
        if self._shortens:
            x_BMTC = self.shortcut_norm(self.shortcut(x_BMTC))
        return muted(tf.nn.relu(self._weighed(inner_BMTC, frames_B) + x_BMTC), frames_B)

    def _weighed(self, x_BMTC: tf.Tensor, frames_B: tf.Tensor | None) -> tf.Tensor:
        mean_BC = mean_over_image(x_BMTC, frames_B)
        weight_BC = tf.sigmoid(self.excite(tf.nn.relu(self.squeeze(mean_BC))))
        return x_BMTC * weight_BC[:, None, None]
