"""What the court asks of a clip: levels in dB of full scale, shares, hashes.

Legend: a frame here is 20 ms of mono sound; frames_NT is (frames, samples in a frame).
"""

import hashlib
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from myxtts.decode.sound import HASH_BYTES, Samples, Sound

Doubles = np.ndarray[Any, np.dtype[np.float64]]
FRAMES_PER_SECOND = 50
QUIETEST_DB = -120.0


@dataclass(frozen=True)
class Measures:
    """One clip in numbers; `failure` says why there are none."""

    index: int
    failure: str = ""
    samples: int = 0
    seconds: float = 0.0
    rate: int = 0
    channels: int = 0
    rail_share: float = 0.0
    not_finite: int = 0
    limited: int = 0
    loudest_db: float = QUIETEST_DB
    speech_db: float = QUIETEST_DB
    """The level that one frame in twenty exceeds."""
    floor_db: float = QUIETEST_DB
    """The level that nine frames in ten exceed."""
    start_db: float = QUIETEST_DB
    end_db: float = QUIETEST_DB
    source_hash: str = ""
    pcm_hash: str = ""


def measure(index: int, sound: Sound, rate: int) -> Measures:
    """The numbers of a decoded clip, rounded so that they are written alike everywhere."""
    levels = _levels(sound.pcm, rate)
    return Measures(
        index=index,
        samples=len(sound.pcm),
        seconds=round(sound.seconds, 4),
        rate=sound.rate,
        channels=sound.channels,
        rail_share=round(sound.rail_share, 5),
        not_finite=sound.not_finite,
        limited=sound.limited,
        source_hash=sound.source_hash,
        pcm_hash=hashlib.blake2b(sound.pcm.tobytes(), digest_size=HASH_BYTES).hexdigest(),
        **levels,
    )


class _Levels(TypedDict, total=False):
    loudest_db: float
    speech_db: float
    floor_db: float
    start_db: float
    end_db: float


def _levels(pcm: Samples, rate: int) -> _Levels:
    if not pcm.size:
        return {}
    size = min(rate // FRAMES_PER_SECOND, len(pcm))
    whole = pcm[: len(pcm) // size * size].astype(np.float64) / 32768
    frames_NT = whole.reshape(-1, size)
    levels = _db(np.square(frames_NT).mean(axis=1))
    last = np.square(pcm[-size:].astype(np.float64) / 32768).mean(keepdims=True)
    return {
        "loudest_db": _rounded(levels.max()),
        "speech_db": _rounded(np.percentile(levels, 95)),
        "floor_db": _rounded(np.percentile(levels, 10)),
        "start_db": _rounded(levels[0]),
        "end_db": _rounded(_db(last)[0]),
    }


def _rounded(level: float) -> float:
    return round(float(level), 2)


def _db(power: Doubles) -> Doubles:
    levels: Doubles = 10 * np.log10(np.maximum(power, 10 ** (QUIETEST_DB / 10)))
    return levels
