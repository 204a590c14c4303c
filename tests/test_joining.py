"""The reference's way of joining the passes of a stream (XTTS.md §6, "Streaming")."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from golden_numbers import Array, distance, golden

from myxtts.vocoder import Joint, join


def pieces_of(passes: Sequence[Array], overlap: int) -> list[Array]:
    joint, pieces = Joint(), []
    for number, wave in enumerate(passes):
        piece, joint = join(wave, joint, last=number == len(passes) - 1, overlap=overlap)
        pieces.append(piece)
    return pieces


def test_pieces_are_those_of_the_reference() -> None:
    given = golden("stream_chunks")
    pieces = pieces_of([given[f"out.pass_{k}"] for k in range(4)], overlap=512)
    for number, piece in enumerate(pieces):
        assert distance(piece, given[f"out.piece_{number}"]) < 1e-6
    assert piece.dtype == np.float32


def ramp(samples: int) -> Any:
    return np.arange(samples, dtype=np.float32)


LENGTHS = [(1000,), (300, 700), (100, 105, 900), (2, 5, 300), (500, 540, 545, 1000), (50, 50, 400)]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_passes_that_agree_join_into_the_last_one(lengths: tuple[int, ...]) -> None:
    # Also pieces too short to blend, and passes shorter than the overlap: nothing is heard twice.
    pieces = pieces_of([ramp(length) for length in lengths], overlap=64)
    assert distance(np.concatenate(pieces), ramp(lengths[-1])) < 1e-6


def test_a_last_piece_too_short_to_blend_is_handed_out_as_it_is() -> None:
    last = ramp(440) + 7
    _, piece = pieces_of([ramp(450), last], overlap=100)
    assert piece.tolist() == last[350:440].tolist()


def test_a_pass_is_not_written_to() -> None:
    first, last = ramp(500), ramp(900)
    pieces_of([first, last], overlap=100)
    assert first.tolist() == ramp(500).tolist()
    assert last.tolist() == ramp(900).tolist()
