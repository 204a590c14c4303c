"""The DVAE: mel frames to codes, four frames to one, and back."""

from myxtts.codec.codebook import DECAY, Codebook, CodebookState, moved, nearest
from myxtts.codec.network import Codec, CodecPass

__all__ = ["DECAY", "Codebook", "CodebookState", "Codec", "CodecPass", "moved", "nearest"]
