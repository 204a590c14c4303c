"""Which clips only judge: by a hash of their ids, so that adding clips moves no other clip."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from myxtts.config import DataConfig


def is_validation(clip: str, share: float) -> bool:
    """Whether the clip with this id is held out; a larger share keeps all that were."""
    digest = hashlib.blake2b(clip.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def drawn(clips: Sequence[str], count: int, seed: int) -> NDArray[np.intp]:
    """So many of the clips, by a hash of their ids; some several times if there are too few.

    A larger count keeps all that a smaller one draws.
    """
    keys = [
        hashlib.blake2b(f"{seed}/{clip}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for clip in clips
    ]
    order = np.array(sorted(range(len(clips)), key=keys.__getitem__), np.intp)
    return np.resize(order, count)


def held_out(clips: Sequence[str], data: DataConfig) -> NDArray[np.bool_]:
    """Which training clips judge instead of teaching: none when `data.val` names others."""
    share = 0.0 if data.val is not None else data.validation_share
    return np.array([is_validation(clip, share) for clip in clips], bool)
