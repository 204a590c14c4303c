"""Resampling from one whole rate to another, equal to torchaudio's default.

Rates in lowest terms, a to b: every a samples in give b samples out, by the same b short
filters. The filters of neighbouring outputs look at nearly the same samples, so a band of
outputs is one matrix product, and the mostly empty a × b matrix is never made.
Legend: B batch, S samples, N blocks, K samples that one band of outputs hears, O its outputs.
"""

from functools import lru_cache
from itertools import pairwise
from math import ceil, gcd
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.audio.filters import Array
from myxtts.audio.lengths import resampled_length
from myxtts.audio.waves import mute_padding, size_of

ZERO_CROSSINGS = 6
"""Half the filter's length."""
ROLLOFF = 0.99
"""The filter's edge, as a share of the lower rate's own limit."""
BAND = 40
"""Outputs of one matrix product: few waste products with zero, many make the products large."""
LEAST_BLOCK = 256
"""Samples in, so that short periods such as 1 to 2 do not fall into tiny pieces."""
MOST_BANDS = 64
"""Keeps the graph small for rates with no common divisor."""


class _Bank(NamedTuple):
    reach: int
    """Samples that a filter hears to each side."""
    block_in: int
    block_out: int
    starts: tuple[int, ...]
    """Where each band begins to listen; 0 is `reach` samples before the block."""
    filters: tuple[Array, ...]
    """Each (K, O)."""


def resample(
    wave_BS: tf.Tensor, from_hz: int, to_hz: int, lengths_B: tf.Tensor | None = None
) -> tf.Tensor:
    """The same sound at another rate; `resampled_length` tells how long each clip becomes.

    With lengths nothing rings on after a clip's end.
    """
    if from_hz == to_hz:
        return wave_BS if lengths_B is None else mute_padding(wave_BS, lengths_B)
    if lengths_B is not None:
        wave_BS = mute_padding(wave_BS, lengths_B)
    samples = resampled_length(size_of(wave_BS, 1), from_hz, to_hz)
    resampled_BS = _convolve(wave_BS, _bank(from_hz, to_hz), samples)
    if lengths_B is None:
        return resampled_BS
    return mute_padding(resampled_BS, resampled_length(lengths_B, from_hz, to_hz))


def _convolve(wave_BS: tf.Tensor, bank: _Bank, samples: int | tf.Tensor) -> tf.Tensor:
    batch = size_of(wave_BS, 0)
    blocks = (samples - 1) // bank.block_out + 1
    after = (blocks + 1) * bank.block_in - bank.reach - size_of(wave_BS, 1)
    padded_BS = tf.pad(wave_BS, [[0, 0], [bank.reach, tf.maximum(after, 0)]])
    used_BS = padded_BS[:, : (blocks + 1) * bank.block_in]
    cells_BN = tf.reshape(used_BS, [batch, blocks + 1, bank.block_in])
    pairs_BN = tf.concat([cells_BN[:, :-1], cells_BN[:, 1:]], -1)
    bands = [
        tf.matmul(pairs_BN[..., start : start + len(filters_KO)], filters_KO)
        for start, filters_KO in zip(bank.starts, bank.filters, strict=True)
    ]
    return tf.reshape(tf.concat(bands, -1), [batch, blocks * bank.block_out])[:, :samples]


@lru_cache
def _bank(from_hz: int, to_hz: int) -> _Bank:
    divisor = gcd(from_hz, to_hz)
    period_in, period_out = from_hz // divisor, to_hz // divisor
    cutoff = ROLLOFF * min(period_in, period_out) / period_in  # In units of one sample in.
    reach = ceil(ZERO_CROSSINGS / cutoff)
    repeats = ceil(max(LEAST_BLOCK, 3 * reach) / period_in)
    block_in, block_out = repeats * period_in, repeats * period_out
    band = max(BAND, ceil(block_out / MOST_BANDS))
    edges = [*range(0, block_out, band), block_out]
    starts, filters = [], []
    for first, end in pairwise(edges):
        outputs_O = np.arange(first, end) * (period_in / period_out)
        start = int(outputs_O[0])
        heard_K = np.arange(start - reach, int(outputs_O[-1]) + reach + 2)
        starts.append(start)
        filters.append(_windowed_sinc(cutoff * (heard_K[:, None] - outputs_O), cutoff))
    return _Bank(reach, block_in, block_out, tuple(starts), tuple(filters))


def _windowed_sinc(crossings: NDArray[np.float64], cutoff: float) -> Array:
    clipped = np.clip(crossings, -ZERO_CROSSINGS, ZERO_CROSSINGS)
    hann = np.cos(np.pi * clipped / (2 * ZERO_CROSSINGS)) ** 2
    return np.asarray(cutoff * np.sinc(clipped) * hann, np.float32)
