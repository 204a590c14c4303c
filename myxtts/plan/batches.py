"""Every batch of every epoch, computed from its number alone.

A group is one batch on every worker, all in one bucket, so that workers keep step. Legend:
N batches, R rows of the largest batch; row -1 holds no clip.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from myxtts.config import DataConfig
from myxtts.plan.ladder import Ladder, Lengths, Numbers, solve_ladder
from myxtts.plan.rows import moves_up, rows_per_batch

NO_CLIP = -1
"""In the place of a clip: the row is silence and its weight is 0."""


@dataclass(frozen=True)
class Position:
    """Where a run stands: `index` counts the batches of one epoch."""

    epoch: int
    index: int


@dataclass(frozen=True)
class Worker:
    """One of several machines that share the clips."""

    index: int = 0
    count: int = 1


ALONE = Worker()


class PlannedBatch(NamedTuple):
    """One worker's clips in one step."""

    number: int
    bucket: int
    clips: NDArray[np.int32]
    """Indices into the lengths that the plan was made of, or NO_CLIP."""


class Table(NamedTuple):
    """A stretch of batches as arrays."""

    buckets: NDArray[np.int32]
    """[N]"""
    clips: NDArray[np.int32]
    """[N, R]; NO_CLIP also beyond the rows of a bucket that has fewer than R."""


class Plan:
    """One worker's batches; equal arguments give equal batches, whatever was asked before."""

    def __init__(
        self,
        samples: Lengths,
        ladder: Ladder,
        rows: tuple[int, ...],
        seed: int,
        worker: Worker = ALONE,
    ) -> None:
        self.samples = samples
        """Every clip's length, over all workers."""
        self.ladder = ladder
        self.rows = rows
        """Clips in a batch of each bucket."""
        self.worker = worker
        self._seed = seed
        self._buckets = ladder.buckets_of(samples)
        self._moves, self._groups = self._fill_groups()
        self._kept = (-1, Table(np.empty(0, np.int32), np.empty((0, 0), np.int32)))

    @property
    def batches_per_epoch(self) -> int:
        """The same for every epoch and every worker."""
        return sum(self._groups)

    @property
    def waste(self) -> float:
        """Share of an epoch's samples, over all workers, that is padding or stands for no clip."""
        shapes = zip(self._groups, self.rows, self.ladder.tops, strict=True)
        padded = sum(groups * rows * top for groups, rows, top in shapes) * self.worker.count
        return 1 - float(self.samples.sum(dtype=np.int64) / padded)

    def position(self, number: int) -> Position:
        """Where the batch with this number over the whole run stands."""
        return Position(*divmod(number, self.batches_per_epoch))

    def number(self, position: Position) -> int:
        """The batch at this position, counted over the whole run."""
        return position.epoch * self.batches_per_epoch + position.index

    def batch(self, number: int) -> PlannedBatch:
        """The batch with this number over the whole run."""
        table = self.table(number, 1)
        bucket = int(table.buckets[0])
        return PlannedBatch(number, bucket, table.clips[0, : self.rows[bucket]])

    def table(self, first: int, count: int) -> Table:
        """The batches `first`, `first + 1` …, over the ends of epochs."""
        parts, end = [], first + count
        while first < end:
            here = self.position(first)
            upto = min(here.index + end - first, self.batches_per_epoch)
            whole = self._epoch(here.epoch)
            parts.append(Table(*(array[here.index : upto] for array in whole)))
            first += upto - here.index
        return Table(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _fill_groups(self) -> tuple[list[int], list[int]]:
        """For each bucket the clips that move up, and the groups of those that stay."""
        sizes = [rows * self.worker.count for rows in self.rows]
        counts = np.bincount(self._buckets, minlength=len(sizes)).tolist()
        moves = moves_up(counts, self.ladder.tops, sizes)
        stays = zip(counts, [0, *moves], moves, sizes, strict=False)
        return moves, [-(-(count + came - gone) // size) for count, came, gone, size in stays]

    def _epoch(self, epoch: int) -> Table:
        # One epoch is kept: its batches are asked for one after the other.
        if self._kept[0] != epoch:
            self._kept = (epoch, self._make_epoch(epoch))
        return self._kept[1]

    def _make_epoch(self, epoch: int) -> Table:
        # Raw numbers of a named generator: NumPy may change how it shuffles, these it may not.
        random = np.random.PCG64((self._seed, epoch))
        mixed = np.argsort(random.random_raw(len(self.samples)), kind="stable")
        arriving = np.empty(0, np.int64)
        buckets, clips = [], []
        for bucket, moved in enumerate(self._moves):
            own = mixed[self._buckets[mixed] == bucket]
            both = np.concatenate([arriving, own])
            here, arriving = np.split(both, [len(both) - moved])
            groups = self._deal(here, bucket)
            clips.append(groups)
            buckets.append(np.full(len(groups), bucket, np.int32))
        order = np.argsort(random.random_raw(self.batches_per_epoch), kind="stable")
        return Table(np.concatenate(buckets)[order], np.concatenate(clips)[order])

    def _deal(self, clips: Numbers, bucket: int) -> NDArray[np.int32]:
        """One worker's rows of each group of a bucket; the silent rows are spread evenly."""
        count, rows = self._groups[bucket], self.rows[bucket]
        workers, index = self.worker.count, self.worker.index
        groups = np.full(count * rows * workers, NO_CLIP, np.int32)
        groups[: len(clips)] = clips
        mine = np.full((count, max(self.rows)), NO_CLIP, np.int32)
        mine[:, :rows] = groups.reshape(count, rows, workers)[:, :, index]
        return mine


def make_plan(
    samples: Lengths,
    data: DataConfig,
    seed: int,
    devices: int = 1,
    worker: Worker = ALONE,
    ladder: Ladder | None = None,
) -> Plan:
    """The plan that the settings ask for; a ladder shared by two plans shares their programs."""
    ladder = ladder or solve_ladder(samples, data.buckets)
    return Plan(samples, ladder, rows_per_batch(ladder, data, devices), seed, worker)
