"""The speaker encoder that hears whose voice a clip is in, and the voice made of several clips."""

from myxtts.speaker.network import Speaker
from myxtts.speaker.voice import (
    REFERENCE_PEAK,
    REFERENCE_SECONDS,
    clip_vectors,
    reference_sound,
    stand_in,
    voice_vector,
)

__all__ = [
    "REFERENCE_PEAK",
    "REFERENCE_SECONDS",
    "Speaker",
    "clip_vectors",
    "reference_sound",
    "stand_in",
    "voice_vector",
]
