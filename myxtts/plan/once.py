"""Every wanted clip once, in a bucket of the caller's choice: to make something of it beforehand.

Legend: K buckets, C clips.
"""

import numpy as np
from numpy.typing import NDArray

from myxtts.plan.batches import NO_CLIP, Plan, Table


class Once(Plan):
    """The batches of wanted clips, in the shapes of another plan."""

    def __init__(self, like: Plan, wanted_KC: NDArray[np.bool_]) -> None:
        super().__init__(like.samples, like.ladder, like.rows, seed=0)
        self._listed = _listed(like.rows, wanted_KC)

    @property
    def batches_per_epoch(self) -> int:
        """All of them."""
        return len(self._listed.buckets)

    def table(self, first: int, count: int) -> Table:
        """Only from the list."""
        return Table(*(array[first : first + count] for array in self._listed))


def mark(wanted_KC: NDArray[np.bool_], table: Table) -> None:
    """Wants every clip of these batches, each in its batch's bucket."""
    buckets_NR = np.broadcast_to(table.buckets[:, None], table.clips.shape)
    there_NR = table.clips != NO_CLIP
    wanted_KC[buckets_NR[there_NR], table.clips[there_NR]] = True


def _listed(rows: tuple[int, ...], wanted_KC: NDArray[np.bool_]) -> Table:
    buckets, batches = [np.empty(0, np.int32)], [np.empty([0, max(rows)], np.int32)]
    for bucket, (wanted_C, size) in enumerate(zip(wanted_KC, rows, strict=True)):
        clips = np.flatnonzero(wanted_C)
        count = -(-len(clips) // size)
        filled = np.full([count * size], NO_CLIP, np.int32)
        filled[: len(clips)] = clips
        wide = np.full([count, max(rows)], NO_CLIP, np.int32)
        wide[:, :size] = filled.reshape(count, size)
        batches.append(wide)
        buckets.append(np.full(count, bucket, np.int32))
    return Table(np.concatenate(buckets), np.concatenate(batches))
