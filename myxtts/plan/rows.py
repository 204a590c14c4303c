"""How many clips a batch of each bucket has, and which clips move up so that batches are full."""

from collections.abc import Sequence

from myxtts.config import DataConfig
from myxtts.errors import UserError
from myxtts.plan.ladder import Ladder

FRAME = 256
"""Samples from one mel frame to the next."""


def rows_per_batch(ladder: Ladder, data: DataConfig, devices: int = 1) -> tuple[int, ...]:
    """Clips in a batch of each bucket; the model devices share them equally."""
    if data.frames_per_batch is None:
        return (data.batch_size * devices,) * len(ladder.tops)
    longest = -(-ladder.tops[-1] // FRAME)
    if longest > data.frames_per_batch:
        raise UserError(
            f"data.frames_per_batch is {data.frames_per_batch}, "
            f"and the longest clips have {longest} frames",
            f"write data.frames_per_batch={longest} or more, or leave longer clips out",
        )
    return tuple(data.frames_per_batch * FRAME // top * devices for top in ladder.tops)


def moves_up(counts: Sequence[int], tops: Sequence[int], groups: Sequence[int]) -> list[int]:
    """How many clips of each bucket go into the next, for the fewest padded samples.

    A group is one batch on every worker. A bucket's last group lacks clips: its rows are filled
    with silence, or its clips ride in a longer bucket's batch, whichever pads less.
    """
    # By clips that arrive from below: padded samples so far, and the moves that led here.
    best: dict[int, tuple[int, list[int]]] = {0: (0, [])}
    for bucket, (count, top, group) in enumerate(zip(counts, tops, groups, strict=True)):
        following: dict[int, tuple[int, list[int]]] = {}
        for arriving, (padded, moves) in best.items():
            full, left = divmod(count + arriving, group)
            ways = [(0, full + bool(left))]
            if left and bucket < len(tops) - 1:
                ways.append((left, full))
            for moved, batches in ways:
                way = (padded + batches * group * top, [*moves, moved])
                following[moved] = min(way, following.get(moved, way))
        best = following
    return best[0][1]
