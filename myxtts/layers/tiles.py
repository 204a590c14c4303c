"""Convolution over time with about half the products (Winograd; Toom and Cook).

Four neighbouring results and the taps they share are two polynomials, and their convolution is
a product of values at a few points: six where there are twelve products for three taps, and
seven where there are sixteen for four. Longer kernels are sums of such pieces. What it costs is
additions, a kernel made ready beforehand, and a last digit or two: errors of some 2e-6 of the
largest value instead of 7e-7. For float32 on a CPU; on a GPU it is unmeasured.

Legend: B batch, T time, I channels in, O channels out, K taps, P pieces of a kernel, R taps of a
piece, N points, M results of a tile, Q tiles, D dilation.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.audio import size_of

TILE = 4
"""Results that one tile gives."""
LEAST_CHANNELS = 32
"""Fewer were not measured. Under XLA, which joins the additions, one core is quicker by a tenth
with 32 channels, two fifths with 128 and two thirds with 256. Graph mode, which goes through
memory for each, is slower below 128 and gains a half with 256.
"""

# Small numbers of both signs and no two alike, whose powers stay close to one; and infinity.
POINTS = {3: (0, 1, -1, 0.5, -2), 4: (0, 1, -1, 0.5, -0.5, 2)}

Array = NDArray[np.float32]


class _Forms(NamedTuple):
    """What turns inputs, kernels and products into each other."""

    input_NN: Array
    kernel_NR: Array
    output_MN: Array


def tiled_kernel(kernel_KIO: tf.Tensor) -> tf.Tensor:
    """(P, N, I, O): the kernel's values at the points, for `convolve_tiles`."""
    taps, width_in, width = kernel_KIO.shape
    piece, pieces = _cut(taps)
    padded = tf.pad(kernel_KIO, [[0, piece * pieces - taps], [0, 0], [0, 0]])
    kernel_PRIO = tf.reshape(padded, [pieces, piece, width_in, width])
    return tf.einsum("nr,prio->pnio", _forms(piece).kernel_NR, kernel_PRIO)


def pays_in_tiles(taps: int, width_in: int, width: int) -> bool:
    """Whether a kernel is quicker so."""
    return taps > 1 and min(width_in, width) >= LEAST_CHANNELS


def convolve_tiles(
    x_BTI: tf.Tensor, kernel_PNIO: tf.Tensor, taps: int, dilation: int = 1
) -> tf.Tensor:
    """(B, T, O), with as many zeros on both sides as leave the length alone."""
    pieces, points, width_in, width = kernel_PNIO.shape
    forms = _forms(points + 1 - TILE)
    batch, time = size_of(x_BTI, 0), size_of(x_BTI, 1)
    tiles = (time - 1) // (TILE * dilation) + 1
    heard = tiles + pieces - 1  # The tiles that the last piece begins with.
    side = (taps - 1) // 2 * dilation
    after = (heard + 1) * TILE * dilation - time - side
    padded = tf.pad(x_BTI, [[0, 0], [side, after], [0, 0]])
    x_BQMDI = tf.reshape(padded, [batch, heard + 1, TILE, dilation, width_in])
    places = [x_BQMDI[:, n // TILE : n // TILE + heard, n % TILE] for n in range(points)]
    value_NBQDI = tf.stack([_sum(weights_N, places) for weights_N in forms.input_NN])
    product_NXO = _products(value_NBQDI, kernel_PNIO, tiles)
    products = tf.unstack(product_NXO)
    results = [
        tf.reshape(_sum(weights_N, products), [batch, tiles, dilation, width])
        for weights_N in forms.output_MN
    ]
    result_BTO = tf.reshape(tf.stack(results, 2), [batch, tiles * TILE * dilation, width])
    return result_BTO[:, :time]


def _products(value_NBQDI: tf.Tensor, kernel_PNIO: tf.Tensor, tiles: int | tf.Tensor) -> tf.Tensor:
    """Of every piece with the tiles it hears: each begins a tile after the one before."""
    pieces, points, width_in, _ = kernel_PNIO.shape
    if pieces == 1:  # Reshaped, not sliced, which would copy the kernel at every call.
        kernel_NIO = tf.reshape(kernel_PNIO, kernel_PNIO.shape[1:])
        return tf.matmul(tf.reshape(value_NBQDI, [points, -1, width_in]), kernel_NIO)
    parts = [
        tf.matmul(
            tf.reshape(value_NBQDI[:, :, piece : piece + tiles], [points, -1, width_in]), kernel_NIO
        )
        for piece, kernel_NIO in enumerate(tf.unstack(kernel_PNIO))
    ]
    return tf.add_n(parts)


def _sum(weights_N: Array, tensors: list[tf.Tensor]) -> tf.Tensor:
    terms = [
        tensor if weight == 1 else tensor * weight
        for weight, tensor in zip(weights_N, tensors, strict=True)
        if weight
    ]
    return tf.add_n(terms) if len(terms) > 1 else terms[0]


def _cut(taps: int) -> tuple[int, int]:
    """Taps of a piece and how many: pieces of a tile's length share what they hear."""
    return (taps, 1) if taps <= 3 else (TILE, -(-taps // TILE))


@lru_cache
def _forms(taps: int) -> _Forms:
    """By the transposition principle: y = V_M' (V_R kernel * V_N^-T x), V the points' powers."""
    points = POINTS[taps]
    input_NN = np.linalg.inv(_powers(points, len(points) + 1)).T
    input_NN[np.abs(input_NN) < 1e-9] = 0
    largest_N1 = np.abs(input_NN).max(1, keepdims=True)
    forms = (input_NN / largest_N1, _powers(points, taps) * largest_N1, _powers(points, TILE).T)
    return _Forms(*(form.astype(np.float32) for form in forms))


def _powers(points: tuple[float, ...], count: int) -> NDArray[np.float64]:
    finite = np.vander(np.asarray(points, np.float64), count, increasing=True)
    return np.vstack([finite, np.eye(count)[-1]])
