"""The reference's way of streaming: each pass decodes all latents so far, and gives a piece.

The ends of two passes differ, as the later one knew what comes next; so the last samples of a
pass are held back and blend into the next pass's. Windows (`reach`) give the whole's samples
and need no blending, at a cost that does not grow with the speech (XTTS.md §6).

Legend: N samples of a pass, P of a piece, O of the overlap.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Wave = NDArray[np.floating[Any]]

OVERLAP = 1024
"""Samples that are held back and blended."""


class Joint(NamedTuple):
    """Where the pieces so far end."""

    given: int = 0
    """Samples handed out."""
    held_O: Wave | None = None
    """Those that the last pass had after them."""


def join(wave_N: Wave, joint: Joint, *, last: bool, overlap: int = OVERLAP) -> tuple[Wave, Joint]:
    """The piece that a pass adds, and where the next one goes on; the last holds nothing back.

    A speech begins with `Joint()`; its pieces together are as long as the last pass. A piece too
    short to blend is handed out with all that follows it, and the next begins right after: the
    reference would repeat the overlap there, which takes pieces of a code or two.
    """
    end = len(wave_N) if last else max(len(wave_N) - overlap, joint.given)
    piece_P = wave_N[joint.given : end].copy()
    held_O = joint.held_O
    if held_O is not None:
        if len(piece_P) < len(held_O):
            return wave_N[joint.given :].copy(), Joint(len(wave_N))
        rising_O = np.linspace(0, 1, len(held_O), dtype=wave_N.dtype)
        piece_P[: len(held_O)] *= rising_O
        piece_P[: len(held_O)] += held_O * rising_O[::-1]
    return piece_P, Joint(end, None if last else wave_N[end:].copy())
