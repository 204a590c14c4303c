"""The DVAE's encoder and decoder, and the pass that trains them (XTTS.md §7).

Legend: B batch, T mel frames, M mel bands, N codes, C width of a code, D width inside.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.codec.codebook import Codebook
from myxtts.config import CodecConfig
from myxtts.layers import Convolution, Linear, Network, Part, Precision

MELS = 80
TAPS = 3


class CodecPass(NamedTuple):
    """What one pass over mels gives: its result, its losses, and what moves the codebook."""

    mel_BTM: tf.Tensor
    """float32, as the decoder tells it from the codes."""
    reconstruction: tf.Tensor
    """float32 scalar: mean squared error of the mel."""
    commitment: tf.Tensor
    """float32 scalar: mean squared distance from the chosen codes; the encoder has its gradient."""
    codes_BN: tf.Tensor
    vectors_BNC: tf.Tensor
    """float32: what chose the codes."""


class Codec(Network):
    """Mels to codes and back."""

    def __init__(
        self, config: CodecConfig, precision: Precision = "float32", *, tiled: bool = False
    ) -> None:
        super().__init__("codec")
        self._made_of = (config, precision)
        self.encoder = Encoder(config, tiled=tiled)
        self.codebook = Codebook(config)
        self.decoder = Decoder(config, tiled=tiled)
        self.made(precision)

    def expect(self, mean_M: NDArray[np.float32]) -> None:
        """Fits first and last bias to the mels' mean, so that only what differs is learned."""
        first, last = self.encoder.down[0], self.decoder.out
        shift_D = tf.einsum("kmd,m->d", tf.convert_to_tensor(first.kernel), mean_M)
        first.bias.assign_sub(shift_D)
        last.bias.assign_add(mean_M)

    def tiled(self) -> "Codec":
        """The same network, quicker on a CPU, not to train: in float32 its kernels are tiled."""
        config, precision = self._made_of
        quick = Codec(config, precision, tiled=precision == "float32")
        pairs = zip(self._flatten_layers(), quick._flatten_layers(), strict=True)
        for mine, its in pairs:
            if isinstance(mine, Convolution):
                its.take(mine)
            elif not isinstance(mine, (Part, Network)):
                for variable, value in zip(its.weights, mine.weights, strict=True):
                    variable.assign(value)
        return quick

    def encode(self, mel_BTM: tf.Tensor) -> tf.Tensor:
        """int32 (B, ceil(ceil(T / 2) / 2))."""
        return self.codebook.codes(self.encoder(mel_BTM))

    def decode(self, codes_BN: tf.Tensor) -> tf.Tensor:
        """float32 (B, 4 N, M)."""
        return tf.cast(self.decoder(self.codebook.look_up(codes_BN)), tf.float32)

    def reconstruct(self, mel_BTM: tf.Tensor) -> CodecPass:
        """There and back, with gradients to the encoder and the decoder."""
        vectors_BNC = tf.cast(self.encoder(mel_BTM), tf.float32)
        codes_BN = self.codebook.codes(vectors_BNC)
        chosen_BNC = self.codebook.look_up(codes_BN)
        commitment = tf.reduce_mean(tf.square(tf.stop_gradient(chosen_BNC) - vectors_BNC))
        # Straight through: the decoder hears the codes, its gradient goes on to the encoder.
        heard_BNC = vectors_BNC + tf.stop_gradient(chosen_BNC - vectors_BNC)
        # Four frames for each code: more than came in, unless those divide by four.
        told_BTM = tf.cast(self.decoder(heard_BNC), tf.float32)[:, : tf.shape(mel_BTM)[1]]
        told_BTM = tf.ensure_shape(told_BTM, mel_BTM.shape)
        reconstruction = tf.reduce_mean(tf.square(told_BTM - tf.cast(mel_BTM, tf.float32)))
        return CodecPass(told_BTM, reconstruction, commitment, codes_BN, vectors_BNC)


class Encoder(Part):
    """A quarter of the frames, as vectors that look for their code."""

    def __init__(self, config: CodecConfig, *, tiled: bool) -> None:
        super().__init__("encoder")
        width, wide = config.width, 2 * config.width
        self.down = [
            Convolution(MELS, width, "down_0", taps=TAPS, stride=2),
            Convolution(width, wide, "down_1", taps=TAPS, stride=2),
        ]
        self.blocks = [Residual(wide, n, tiled=tiled) for n in range(config.residual_blocks)]
        self.out = Linear(wide, config.code_width, "out")

    def call(self, x_BTM: tf.Tensor) -> tf.Tensor:
        """(B, N, C)."""
        for down in self.down:
            x_BTM = tf.nn.relu(down(x_BTM))
        for block in self.blocks:
            x_BTM = block(x_BTM)
        return self.out(x_BTM)


class Decoder(Part):
    """Mels from the codes' vectors."""

    def __init__(self, config: CodecConfig, *, tiled: bool) -> None:
        super().__init__("decoder")
        width, wide = config.width, 2 * config.width
        self.inside = Linear(config.code_width, wide, "in")
        self.blocks = [Residual(wide, n, tiled=tiled) for n in range(config.residual_blocks)]
        self.up = [
            Convolution(wide, wide, "up_0", taps=TAPS, tiled=tiled),
            Convolution(wide, width, "up_1", taps=TAPS, tiled=tiled),
        ]
        self.out = Linear(width, MELS, "out")

    def call(self, x_BNC: tf.Tensor) -> tf.Tensor:
        """(B, 4 N, M)."""
        return self.out(self.before_last(x_BNC))

    def before_last(self, x_BNC: tf.Tensor) -> tf.Tensor:
        """(B, 4 N, D): all but the last layer."""
        x_BND = self.inside(x_BNC)
        for block in self.blocks:
            x_BND = block(x_BND)
        for up in self.up:
            x_BND = tf.nn.relu(up(tf.repeat(x_BND, 2, axis=1)))
        return x_BND


class Residual(Part):
    """Two convolutions over time and a matrix, added to what came in."""

    def __init__(self, width: int, number: int, *, tiled: bool) -> None:
        super().__init__(f"residual_{number}")
        self.hear = [
            Convolution(width, width, f"conv_{n}", taps=TAPS, tiled=tiled) for n in range(2)
        ]
        self.mix = Linear(width, width, "conv_2")

    def call(self, x_BND: tf.Tensor) -> tf.Tensor:
        """The same shape."""
        inner_BND = x_BND
        for hear in self.hear:
            inner_BND = tf.nn.relu(hear(inner_BND))
        return x_BND + self.mix(inner_BND)
