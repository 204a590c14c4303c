"""How many samples, frames and codes stand for the same piece of sound (XTTS.md §3, §7).

Every function takes plain whole numbers and integer tensors alike.
"""

from typing import Any

CODEC_HZ = 22050
"""Rate of the DVAE and of the conditioning."""
SPEAKER_HZ = 16000
"""Rate of the speaker encoder."""
VOCODER_HZ = 24000
"""Rate of the speech that comes out."""
HOP = 256
"""Samples from one mel frame to the next, at 22.05 kHz."""
SAMPLES_PER_CODE = 1024
"""Four frames, at 22.05 kHz."""

Length = Any
"""A whole number or a tensor of them."""


def frames_for_samples(samples: Length, hop: int = HOP) -> Length:
    """Frames are centred on every `hop`-th sample, the first on sample 0."""
    return samples // hop + 1


def codes_for_samples(samples: Length) -> Length:
    """How many codes the GPT learns for a clip; the DVAE may give one more."""
    return _ceil_divide(samples, SAMPLES_PER_CODE)


def codes_for_frames(frames: Length) -> Length:
    """How many codes the DVAE gives: its two convolutions halve and round up, one by one."""
    return _ceil_divide(_ceil_divide(frames, 2), 2)


def resampled_length(samples: Length, from_hz: int, to_hz: int) -> Length:
    """The least whole number that is not below `samples * to_hz / from_hz`."""
    # In two parts, because the product of a long clip and a rate leaves 32 bits.
    return samples // from_hz * to_hz + _ceil_divide(samples % from_hz * to_hz, from_hz)


def _ceil_divide(number: Length, divisor: int) -> Length:
    return (number + divisor - 1) // divisor
