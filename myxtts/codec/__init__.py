"""The DVAE: mel frames to codes, four frames to one, and back."""

from myxtts.codec.codebook import (
    DECAY,
    Codebook,
    CodebookState,
    chosen,
    followed,
    moved,
    nearest,
)
from myxtts.codec.network import Codec, CodecPass
from myxtts.codec.start import k_means, revived, usage

__all__ = [
    "DECAY",
    "Codebook",
    "CodebookState",
    "Codec",
    "CodecPass",
    "chosen",
    "followed",
    "k_means",
    "moved",
    "nearest",
    "revived",
    "usage",
]
