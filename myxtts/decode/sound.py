"""Reads one file of any format that libsndfile knows, as mono 16-bit sound of one rate.

Legend: a frame is one sample of every channel. Shapes: block_FC (frames, channels), mono_F.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

BLOCK = 1 << 17
"""Samples read at once, all channels together."""
FULL_SCALE = 32767 / 32768
"""From here on a sample touches the rails of a 16-bit recording."""
HASH_BYTES = 16

Floats = np.ndarray[Any, np.dtype[np.float32]]
Samples = np.ndarray[Any, np.dtype[np.int16]]


class UnreadableError(Exception):
    """No sound can be had from this file; the message says why."""


@dataclass(frozen=True)
class Limits:
    """How much of a file is looked at, so that no header decides how much memory is taken."""

    rate: int
    longest_seconds: float
    lowest_rate: int
    highest_rate: int
    seconds_per_clip: float


@dataclass(frozen=True)
class Sound:
    """A decoded file; where it is too long or not finite, `pcm` is empty."""

    pcm: Samples
    seconds: float
    rate: int
    channels: int
    rail_share: float
    not_finite: int
    limited: int
    """Samples that had to be limited to fit into 16 bits."""
    source_hash: str


def read_sound(path: Path, limits: Limits) -> Sound:
    """Decodes, mixes to mono, resamples and hashes one file; UnreadableError if it cannot."""
    with _opened(path) as descriptor:
        try:
            with soundfile.SoundFile(descriptor, closefd=False) as file:
                sound = _read(file, limits)
        # libsndfile's own errors, and what its bindings say to headers beyond all measure.
        except (soundfile.SoundFileError, OSError, ValueError, MemoryError, OverflowError) as error:
            raise UnreadableError(_reason(error)) from None
        hashed = _hash(descriptor) if sound.pcm.size else ""
    return Sound(**{**sound.__dict__, "source_hash": hashed})


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        # Without O_NONBLOCK opening a named pipe would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise UnreadableError(_reason(error)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableError("not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _read(file: soundfile.SoundFile, limits: Limits) -> Sound:
    rate, channels = int(file.samplerate), int(file.channels)
    if not limits.lowest_rate <= rate <= limits.highest_rate:
        low, high = limits.lowest_rate, limits.highest_rate
        raise UnreadableError(f"{rate} samples a second, outside {low} to {high}")
    # One second more than is wanted, so that "too long" is seen and not guessed.
    wanted = int(rate * (limits.longest_seconds + 1))
    parts: list[Floats] = []
    frames = rails = broken = 0
    for block_FC in _blocks(file, wanted):
        parts.append(block_FC.mean(axis=1, dtype=np.float32))
        frames += len(block_FC)
        rails += int((np.abs(block_FC) >= FULL_SCALE).any(axis=1).sum())
        broken += int((~np.isfinite(block_FC)).any(axis=1).sum())
    # A header's word is taken only for the part that was not looked at.
    seconds = (frames if frames < wanted else max(frames, file.frames)) / rate
    usable = parts and not broken and frames < wanted
    mono_F = np.concatenate(parts) if usable else np.zeros(0, np.float32)
    pcm, limited = _to_int16(_resampled(mono_F, rate, limits.rate))
    return Sound(pcm, seconds, rate, channels, rails / max(frames, 1), broken, limited, "")


def _blocks(file: soundfile.SoundFile, wanted: int) -> Iterator[Floats]:
    room_FC = np.empty((max(1, BLOCK // file.channels), file.channels), np.float32)
    while wanted > 0:
        block_FC = file.read(out=room_FC[: min(wanted, len(room_FC))])
        if not len(block_FC):
            return
        wanted -= len(block_FC)
        yield block_FC


def _resampled(mono_F: Floats, rate: int, wanted: int) -> Floats:
    if rate == wanted or not mono_F.size:
        return mono_F
    resampled: Floats = soxr.resample(mono_F, rate, wanted, quality="HQ")
    return resampled


def _to_int16(mono_F: Floats) -> tuple[Samples, int]:
    # libsndfile divides 16-bit samples by 32768: so they come back exactly as they were.
    scaled_F = np.rint(mono_F * np.float32(32768))
    limited = int(((scaled_F < -32768) | (scaled_F > 32767)).sum())
    return np.clip(scaled_F, -32768, 32767).astype("<i2"), limited


def _hash(descriptor: int) -> str:
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    os.lseek(descriptor, 0, os.SEEK_SET)
    while block := os.read(descriptor, 1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _reason(error: Exception) -> str:
    text = getattr(error, "error_string", None) or getattr(error, "strerror", None) or str(error)
    return text.strip() or type(error).__name__
