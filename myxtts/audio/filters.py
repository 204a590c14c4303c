"""Windows and filterbanks, computed once in float64 and kept as float32 constants.

Legend: F bins of the spectrum, M mel bands.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True)
class FrontEnd:
    """One row of the table in XTTS.md §3; lengths are in samples."""

    hz: int
    fft: int
    window_length: int
    hop: int
    mels: int
    window: Literal["hann", "hamming"] = "hann"
    area_norm: bool = True
    """Divides each filter by its width, as librosa's "slaney" norm does."""
    highest_hz: float = 8000.0


DVAE = FrontEnd(22050, fft=1024, window_length=1024, hop=256, mels=80)
CONDITIONING = FrontEnd(22050, fft=2048, window_length=1024, hop=256, mels=80)
CONDITIONING_V1 = FrontEnd(22050, fft=4096, window_length=4096, hop=1024, mels=80)
"""The conditioning of XTTS-v1."""
SPEAKER = FrontEnd(
    16000, fft=512, window_length=400, hop=160, mels=64, window="hamming", area_norm=False
)
VOCODER = FrontEnd(24000, fft=1024, window_length=1024, hop=256, mels=80, highest_hz=12000.0)
"""Not the reference's: what the vocoder's sound is judged by while it learns."""


@lru_cache
def window(front: FrontEnd) -> Array:
    """The periodic window of a front end."""
    low, high = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46)}[front.window]
    angles = 2 * np.pi * np.arange(front.window_length) / front.window_length
    return _constant(low - high * np.cos(angles))


@lru_cache
def filterbank(front: FrontEnd) -> Array:
    """Triangular filters on the HTK mel scale, up to the last bin that any of them hears."""
    # HTK's scale together with the area norm, which librosa does not give by default.
    bins_F = np.linspace(0, front.hz / 2, front.fft // 2 + 1)
    edges = _to_hz(np.linspace(0, _to_mel(front.highest_hz), front.mels + 2))
    low_M, middle_M, high_M = edges[:-2], edges[1:-1], edges[2:]
    rising_FM = (bins_F[:, None] - low_M) / (middle_M - low_M)
    falling_FM = (high_M - bins_F[:, None]) / (high_M - middle_M)
    filters_FM = np.maximum(0, np.minimum(rising_FM, falling_FM))
    if front.area_norm:
        filters_FM *= 2 / (high_M - low_M)
    heard = int(np.flatnonzero(filters_FM.any(axis=1))[-1]) + 1
    return _constant(filters_FM[:heard])


def _to_mel(hz: float) -> float:
    return float(2595 * np.log10(1 + hz / 700))


def _to_hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return 700 * (10 ** (mel / 2595) - 1)


def _constant(values: NDArray[np.float64]) -> Array:
    held = values.astype(np.float32)
    held.flags.writeable = False
    return held
