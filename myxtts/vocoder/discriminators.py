"""Who tells made sound from real, while the vocoder learns: the discriminators of HiFi-GAN.

Some hear every second, third, fifth … sample on lanes of their own, the others hear sound that is
halved again and again. Each gives a score for every stretch of sound, 1 for real and 0 for made,
and what it noticed on the way. Legend: B batch, N samples, P lanes, T time, C channels.
"""

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

import tensorflow as tf

from myxtts.audio import size_of
from myxtts.config import DiscriminatorConfig
from myxtts.layers import Network, Part, Precision
from myxtts.vocoder.strided import SpectralNormed, Strided, WeightNormed

SLOPE = 0.1
PERIOD_WIDTHS = (1, 4, 16, 32, 32)
"""Of a period's layers, in units of the first one's."""
PERIOD_TAPS, PERIOD_STRIDES = 5, (3, 3, 3, 3, 1)
SCALE_LAYERS = (
    # Width in units of the first one's, taps, stride, share of the groups.
    (1, 15, 1, 0.0),
    (1, 41, 2, 0.25),
    (2, 41, 2, 1.0),
    (4, 41, 4, 1.0),
    (8, 41, 4, 1.0),
    (8, 41, 1, 1.0),
    (8, 5, 1, 0.0),
)
SCORE_TAPS = 3
POOL, POOL_STRIDE = 4, 2


class Opinion(NamedTuple):
    """What one discriminator says of sound."""

    score_BPT1: tf.Tensor
    """float32"""
    features: tuple[tf.Tensor, ...]
    """(B, P, T, C) of every layer before the score, in the compute type."""


class Discriminators(Network):
    """All of them; they agree on nothing and share nothing."""

    def __init__(self, config: DiscriminatorConfig, precision: Precision = "float32") -> None:
        super().__init__("discriminators")
        self.periods = [PeriodJudge(period, config.period_width) for period in config.periods]
        self.scales = [
            ScaleJudge(scale, config.scale_width, config.scale_groups)
            for scale in range(config.scales)
        ]
        self.made(precision)
        self.autocast = False  # Sound is halved in float32.

    def call(self, wave_BN: tf.Tensor) -> list[Opinion]:
        """First those of the periods, then those of the scales."""
        opinions = [judge(wave_BN) for judge in self.periods]
        for scale, judge in enumerate(self.scales):
            wave_BN = halved(wave_BN) if scale else wave_BN
            opinions.append(judge(wave_BN))
        return opinions


class PeriodJudge(Part):
    """Hears as many lanes as the period has samples, each alone and all by the same kernels."""

    def __init__(self, period: int, width: int) -> None:
        super().__init__(f"period_{period}")
        self._period = period
        widths = [1, *(width * factor for factor in PERIOD_WIDTHS)]
        self.inner = [
            WeightNormed(widths[n], widths[n + 1], f"layer_{n}", taps=PERIOD_TAPS, stride=stride)
            for n, stride in enumerate(PERIOD_STRIDES)
        ]
        self.score = WeightNormed(widths[-1], 1, "score", taps=SCORE_TAPS)

    def call(self, wave_BN: tf.Tensor) -> Opinion:
        """The end is mirrored until the lanes are equally long."""
        samples = size_of(wave_BN, 1)
        whole_BN = tf.pad(wave_BN, [[0, 0], [0, -samples % self._period]], "REFLECT")
        shape = [size_of(wave_BN, 0), size_of(whole_BN, 1) // self._period, self._period]
        x_BTP = tf.reshape(whole_BN, shape)
        return _opinion(tf.transpose(x_BTP, [0, 2, 1])[..., None], self.inner, self.score)


class ScaleJudge(Part):
    """Hears the sound as it comes, over long stretches."""

    def __init__(self, scale: int, width: int, groups: int) -> None:
        super().__init__(f"scale_{scale}")
        make = WeightNormed if scale else SpectralNormed
        self.inner: list[Strided] = []
        width_in = 1
        for n, (factor, taps, stride, share) in enumerate(SCALE_LAYERS):
            among = gcd(groups, max(1, int(groups * share)))  # Divides the width as all do.
            self.inner.append(
                make(width_in, width * factor, f"layer_{n}", taps=taps, stride=stride, groups=among)
            )
            width_in = width * factor
        self.score = make(width_in, 1, "score", taps=SCORE_TAPS)

    def call(self, wave_BN: tf.Tensor) -> Opinion:
        """On one lane."""
        return _opinion(wave_BN[:, None, :, None], self.inner, self.score)


def halved(wave_BN: tf.Tensor) -> tf.Tensor:
    """(B, N / 2 + 1): means of four samples, two apart; beyond the ends stand zeros."""
    padded_BN1 = tf.pad(wave_BN, [[0, 0], [POOL // 2, POOL // 2]])[..., None]
    return tf.nn.avg_pool1d(padded_BN1, POOL, POOL_STRIDE, "VALID")[..., 0]


def _opinion(x_BPTC: tf.Tensor, inner: Sequence[Strided], score: Strided) -> Opinion:
    features = []
    for layer in inner:
        x_BPTC = _leaky(layer(x_BPTC))
        features.append(x_BPTC)
    return Opinion(tf.cast(score(x_BPTC), tf.float32), tuple(features))


def _leaky(x: tf.Tensor) -> tf.Tensor:
    # Not tf.nn.leaky_relu: in these graphs its gradient makes TensorFlow's remapper fail, with an
    # error on the screen.
    return tf.maximum(x, SLOPE * x)
