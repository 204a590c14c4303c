"""The GPT's weights as decoding reads them: all blocks in one stack, each matrix by its outputs.

Decoding one row reads every weight once a code, and little else takes time. XLA's product of one
row streams a matrix of (outputs, inputs) and widens its numbers on the way, so fewer bits are
fewer seconds. The stack keeps it so: taken out of a stack by the number of the block, a matrix
is widened at each use, where a matrix of its own would be widened once, before the loop.

Legend: L blocks, I numbers in, O numbers out, N any leading axes, D width.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.gpt.network import Gpt
from myxtts.layers.norm import EPSILON

Kind = Literal["float32", "bfloat16", "int8"]
"""How each number of a matrix is kept: exact, 8 bits of it, or one of 255 steps."""

LARGEST = 127
ROWS_APART = 8
"""Up to so many rows are multiplied one by one: a product of several takes as long as eight."""


class Matrix(NamedTuple):
    """What a linear layer multiplies by, adds, and, for int8, scales by."""

    kernel_OI: tf.Tensor
    """float32; int8; or uint16, the upper half of a float32's bits, which is bfloat16.

    XLA widens bfloat16 itself one number at a time, and shifts bits sixteen at a time.
    """
    bias_O: tf.Tensor
    scale_O: tf.Tensor | None = None

    def at(self, block: tf.Tensor) -> "Matrix":
        """One block's, of a stack."""
        scale_O = None if self.scale_O is None else self.scale_O[block]
        return Matrix(self.kernel_OI[block], self.bias_O[block], scale_O)

    def widened(self) -> tf.Tensor:
        """The kernel in float32, not yet scaled."""
        if self.kernel_OI.dtype == tf.uint16:
            return tf.bitcast(tf.cast(self.kernel_OI, tf.uint32) * 2**16, tf.float32)
        return tf.cast(self.kernel_OI, tf.float32)

    def __call__(self, x_NI: tf.Tensor) -> tf.Tensor:
        """(N, O), summed in float32."""
        width_in, width = x_NI.shape[-1], self.bias_O.shape[-1]
        flat = tf.reshape(x_NI, [-1, width_in])
        out = _product(flat, self.widened())
        if self.scale_O is not None:
            out *= self.scale_O
        return tf.reshape(out + self.bias_O, [*x_NI.shape[:-1], width])


class Norm(NamedTuple):
    """A scale and a shift after the norm."""

    gamma_D: tf.Tensor
    beta_D: tf.Tensor

    def __call__(self, x_ND: tf.Tensor) -> tf.Tensor:
        """(N, D)."""
        return normal(x_ND) * self.gamma_D + self.beta_D


class BlockWeights(NamedTuple):
    """The stack of all blocks, or one of them; the norms' scales and shifts are in the matrices."""

    qkv: Matrix
    out: Matrix
    widen: Matrix
    narrow: Matrix

    def at(self, block: tf.Tensor) -> "BlockWeights":
        """One block's, of a stack."""
        return BlockWeights(*(part.at(block) for part in self))

    def mlp(self, x_ND: tf.Tensor) -> tf.Tensor:
        """Each position by itself."""
        return self.narrow(_gelu(self.widen(normal(x_ND))))


def normal(x_ND: tf.Tensor) -> tf.Tensor:
    """Zero mean and unit variance."""
    centred = x_ND - total(x_ND) / x_ND.shape[-1]
    variance = total(tf.square(centred)) / x_ND.shape[-1]
    # Ends in a division, which XLA does once. A product it would put into the next matrix's
    # loop, and do again for every output.
    return centred / tf.sqrt(variance + EPSILON)


def total(x_ND: tf.Tensor) -> tf.Tensor:
    """(N, 1), as a product: XLA makes three slow steps of a sum over the last axis."""
    return tf.matmul(x_ND, tf.ones([x_ND.shape[-1], 1]))


def _gelu(x: tf.Tensor) -> tf.Tensor:
    """GPT-2's, with tanh; as a division for the same reason."""
    inner = (8 / math.pi) ** 0.5 * (x + 0.044715 * x * x * x)
    return x / (1 + tf.exp(-inner))


class DecodingWeights(NamedTuple):
    """All that decoding needs of a GPT; the GPT itself may be dropped."""

    blocks: BlockWeights
    text_embedding: tf.Tensor
    text_positions: tf.Tensor
    audio_embedding: tf.Tensor
    audio_positions: tf.Tensor
    last_norm: Norm
    final_norm: Norm
    audio_head: Matrix

    @property
    def megabytes(self) -> float:
        """What they take on their device, in units of 1,000,000 bytes."""
        tensors = [t for t in tf.nest.flatten(self) if t is not None]
        return sum(int(t.dtype.size) * int(np.prod(t.shape)) for t in tensors) / 1e6


def decoding_weights(gpt: Gpt, kind: Kind, device: str) -> DecodingWeights:
    """Copies a GPT's weights to the device, its matrices in the wanted kind."""
    with tf.device(device):
        return DecodingWeights(
            blocks=_blocks(gpt, kind),
            text_embedding=_kept(gpt.text_embedding.table),
            text_positions=_kept(gpt.text_positions.table),
            audio_embedding=_kept(gpt.audio_embedding.table),
            audio_positions=_kept(gpt.audio_positions.table),
            last_norm=Norm(_kept(gpt.last_norm.gamma), _kept(gpt.last_norm.beta)),
            final_norm=Norm(_kept(gpt.final_norm.gamma), _kept(gpt.final_norm.beta)),
            audio_head=_unstacked(_matrices([gpt.audio_head], [None], kind)),
        )


def _blocks(gpt: Gpt, kind: Kind) -> BlockWeights:
    def matrices(part: str, norm: str | None = None) -> Matrix:
        norms = [getattr(block, norm) if norm else None for block in gpt.blocks]
        return _matrices([getattr(block, part) for block in gpt.blocks], norms, kind)

    return BlockWeights(
        qkv=matrices("qkv", "attention_norm"),
        out=matrices("out"),
        widen=matrices("widen", "mlp_norm"),
        narrow=matrices("narrow"),
    )


def _matrices(layers: list[Any], norms: list[Any], kind: Kind) -> Matrix:
    folded = [_folded(layer, norm) for layer, norm in zip(layers, norms, strict=True)]
    narrowed = [NARROW[kind](kernel) for kernel, _ in folded]
    kernel = tf.constant(np.stack([kernel for kernel, _ in narrowed]))
    scales = [scale for _, scale in narrowed if scale is not None]
    bias = tf.constant(np.stack([bias for _, bias in folded]))
    return Matrix(kernel, bias, tf.constant(np.stack(scales)) if scales else None)


def _folded(layer: Any, norm: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Kernel (O, I) and bias, with the scale and shift of the norm before, where there is one."""
    kernel_OI, bias_O = layer.kernel.numpy().T, layer.bias.numpy()
    if norm is None:
        return kernel_OI, bias_O
    return kernel_OI * norm.gamma.numpy(), bias_O + kernel_OI @ norm.beta.numpy()


def _unstacked(stack: Matrix) -> Matrix:
    return Matrix(*(None if part is None else part[0] for part in stack))


def _whole(kernel_OI: NDArray[np.float32]) -> tuple[NDArray[Any], None]:
    return kernel_OI, None


def _upper_half(kernel_OI: NDArray[np.float32]) -> tuple[NDArray[Any], None]:
    """Rounded to the nearest, ties to even."""
    return tf.bitcast(tf.cast(kernel_OI, tf.bfloat16), tf.uint16).numpy(), None


def _steps(kernel_OI: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Each output has steps of its own, so that its largest number is 127 of them."""
    largest_O1 = np.abs(kernel_OI).max(1, keepdims=True)
    scale_O1 = np.where(largest_O1 > 0, largest_O1, 1) / np.float32(LARGEST)
    return np.rint(kernel_OI / scale_O1).astype(np.int8), scale_O1[:, 0]


NARROW: dict[Kind, Callable[[NDArray[np.float32]], tuple[NDArray[Any], NDArray[Any] | None]]] = {
    "float32": _whole,
    "bfloat16": _upper_half,
    "int8": _steps,
}


def _kept(variable: Any) -> tf.Tensor:
    return tf.constant(variable.numpy())


def _product(x_NI: tf.Tensor, kernel_OI: tf.Tensor) -> tf.Tensor:
    """Row by row for few rows, which is faster and gives a row the same numbers in any batch."""
    rows = x_NI.shape[0]
    if rows is None or rows > ROWS_APART:
        return tf.matmul(x_NI, kernel_OI, transpose_b=True)
    one_by_one = [tf.matmul(x_NI[n : n + 1], kernel_OI, transpose_b=True) for n in range(rows)]
    return tf.concat(one_by_one, 0)
