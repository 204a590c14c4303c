"""The generator: frames to sound, in stages that each add channels up to more samples.

Legend: B batch, L latents, D their width, S width of the speaker vector, T time of a stage,
C channels of a stage, N samples; 1 stands where TensorFlow's convolution has its second axis.
"""

from functools import reduce
from typing import Any

import tensorflow as tf

from myxtts.config import VocoderConfig
from myxtts.layers import (
    Convolution,
    Kernel,
    Linear,
    Network,
    NormedConvolution,
    NormedUpsampling,
    Part,
    Precision,
)
from myxtts.vocoder.lengths import FIRST_TAPS, LAST_TAPS, Length, frames_of
from myxtts.weights import named_weights

SLOPE = 0.1
LAST_SLOPE = 0.01


class Vocoder(Network):
    """Latents and a speaker vector in, sound at 24 kHz out."""

    def __init__(
        self,
        config: VocoderConfig,
        *,
        latent_width: int,
        speaker_width: int,
        precision: Precision = "float32",
        kernel: Kernel = "normed",
    ) -> None:
        super().__init__("vocoder")
        self._made_of = (config, latent_width, speaker_width, precision)
        self.first = Convolution(latent_width, config.width, "first", taps=FIRST_TAPS)
        self.speaker = Linear(speaker_width, config.width, "speaker")
        self.stages = [
            Stage(config, stage, speaker_width, kernel=kernel)
            for stage in range(len(config.upsample_rates))
        ]
        width = config.width // 2 ** len(self.stages)
        self.last = Convolution(width, 1, "last", taps=LAST_TAPS, bias=False)
        self.made(precision)
        self.autocast = False  # The latents are stretched in their own type.

    def call(
        self,
        latents_BLD: tf.Tensor,
        speaker_BS: tf.Tensor,
        *,
        first: Length = 0,
        frames: Length | None = None,
    ) -> tf.Tensor:
        """(B, N), float32.

        A window of a longer speech begins with its latent `first`, and gives the samples from
        there on; those nearer to the window's ends than `reach` are not the whole's.
        """
        frames_BTD = frames_of(latents_BLD, first, frames)
        x_BTC = self.first(frames_BTD) + self.speaker(speaker_BS)[:, None]
        x_B1TC = x_BTC[:, None]
        for stage in self.stages:
            x_B1TC = stage(x_B1TC, speaker_BS)
        x_BTC = tf.nn.leaky_relu(x_B1TC[:, 0], LAST_SLOPE)
        return tf.tanh(tf.cast(self.last(x_BTC)[..., 0], tf.float32))

    def folded(self, *, tiled: bool | None = None) -> "Vocoder":
        """The same network with its norms folded: as quick as it gets to speak, not to be trained.

        Its kernels are in tiles in float32, the quicker form on a CPU under XLA, unless told
        otherwise.
        """
        config, latent_width, speaker_width, precision = self._made_of
        plain = Vocoder(
            config,
            latent_width=latent_width,
            speaker_width=speaker_width,
            precision=precision,
            kernel="tiled" if (precision == "float32" if tiled is None else tiled) else "plain",
        )
        mine = named_weights(self)
        for name, variable in named_weights(plain).items():
            if name in mine:
                variable.assign(mine[name])
        for ours, its in zip(self._normed(), plain._normed(), strict=True):
            its.kernel.assign(its.kept(ours.folded()))
        return plain

    def _normed(self) -> list[Any]:
        return [layer for stage in self.stages for layer in stage.normed()]


class Stage(Part):
    """More samples, fewer channels, and the mean of the residual units."""

    def __init__(
        self, config: VocoderConfig, stage: int, speaker_width: int, *, kernel: Kernel
    ) -> None:
        super().__init__(f"stage_{stage}")
        width = config.width // 2 ** (stage + 1)
        taps, rate = config.upsample_kernels[stage], config.upsample_rates[stage]
        self.up = NormedUpsampling(2 * width, width, "up", taps=taps, rate=rate, kernel=kernel)
        self.speaker = Linear(speaker_width, width, "speaker")
        self.units = [
            Unit(width, taps, config.residual_dilations, f"unit_{number}", kernel=kernel)
            for number, taps in enumerate(config.residual_kernels)
        ]

    def call(self, x_B1TC: tf.Tensor, speaker_BS: tf.Tensor) -> tf.Tensor:
        """(B, 1, T x rate, C / 2)."""
        x_B1TC = self.up(tf.nn.leaky_relu(x_B1TC, SLOPE)) + self.speaker(speaker_BS)[:, None, None]
        return reduce(tf.add, [unit(x_B1TC) for unit in self.units]) / len(self.units)

    def normed(self) -> list[Any]:
        """The layers that fold."""
        return [self.up, *(layer for unit in self.units for layer in unit.normed())]


class Unit(Part):
    """Pairs of convolutions, the first of each over samples further and further apart."""

    def __init__(
        self, width: int, taps: int, dilations: tuple[int, ...], name: str, *, kernel: Kernel
    ) -> None:
        super().__init__(name)
        self.spread = [
            NormedConvolution(
                width, width, f"spread_{n}", taps=taps, dilation=dilation, kernel=kernel
            )
            for n, dilation in enumerate(dilations)
        ]
        self.plain = [
            NormedConvolution(width, width, f"plain_{n}", taps=taps, dilation=1, kernel=kernel)
            for n in range(len(dilations))
        ]

    def call(self, x_B1TC: tf.Tensor) -> tf.Tensor:
        """(B, 1, T, C)."""
        for spread, plain in zip(self.spread, self.plain, strict=True):
            inner_B1TC = spread(tf.nn.leaky_relu(x_B1TC, SLOPE))
            x_B1TC = plain(tf.nn.leaky_relu(inner_B1TC, SLOPE), x_B1TC)
        return x_B1TC

    def normed(self) -> list[Any]:
        """The layers that fold."""
        return [*self.spread, *self.plain]
