"""The few lengths that all batches are padded to, solved exactly from the clips' own lengths.

Legend: a step is one distinct length in whole codes; a top is the longest length of a bucket.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from myxtts.errors import UserError

CODE = 1024
"""Samples behind one audio code of the released codec: no shape cuts a code."""

Lengths = NDArray[np.integer[Any]]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ladder:
    """The buckets' lengths, and what padding each clip to its bucket costs."""

    tops: tuple[int, ...]
    """Samples in a clip of each bucket, rising."""
    waste: float
    """Share of the padded clips that is padding."""

    def buckets_of(self, samples: Lengths) -> Numbers:
        """The shortest bucket that holds each clip."""
        if len(samples) and samples.max() > self.tops[-1]:
            raise ValueError(f"a clip of {samples.max()} samples fits no bucket of {self.tops}")
        return np.searchsorted(self.tops, samples).astype(np.int64)


def solve_ladder(samples: Lengths, buckets: int, shape_cost: int = 0) -> Ladder:
    """At most so many buckets with the fewest padded samples.

    `shape_cost` is the number of padded samples that compiling one more shape is worth.
    """
    if not len(samples):
        raise UserError("there are no clips to make batches of", "see which were refused and why")
    tops, counts = np.unique(whole_codes(samples), return_counts=True)
    clips = np.concatenate([[0], np.cumsum(counts)])
    # best[j]: padded samples of the first j steps, in at most as many buckets as there are layers.
    best = np.concatenate([[0], tops * clips[1:]])
    totals, splits = [int(best[-1])], [np.zeros_like(best)]
    for _ in range(1, min(buckets, len(tops))):
        best, split = _one_bucket_more(best, tops, clips)
        totals.append(int(best[-1]))
        splits.append(split)
    layers = int(np.argmin([total + shape_cost * k for k, total in enumerate(totals, 1)])) + 1
    chosen, end = [], len(tops)
    while end:
        layers -= 1
        chosen.append(int(tops[end - 1]))
        end = int(splits[layers][end])
    return ladder_of(samples, tuple(reversed(chosen)))


def ladder_of(samples: Lengths, tops: tuple[int, ...]) -> Ladder:
    """The ladder with these tops, and its waste on these clips."""
    padded = np.array(tops)[np.searchsorted(tops, samples)].sum(dtype=np.int64)
    return Ladder(tops, 1 - float(samples.sum(dtype=np.int64) / padded))


def whole_codes(samples: Lengths) -> Numbers:
    """Samples rounded up to whole codes, at least one."""
    return np.maximum(1, -(-samples.astype(np.int64) // CODE)) * CODE


def _one_bucket_more(before: Numbers, tops: Numbers, clips: Numbers) -> tuple[Numbers, Numbers]:
    """Each prefix's padded samples with one bucket more, and where its last bucket begins.

    The last bucket's cost obeys the quadrangle inequality, so the best split never moves back
    as the prefix grows: halving the prefixes bounds each search by its neighbours' splits.
    """
    best, split = np.zeros_like(before), np.zeros_like(before)
    ranges = [(1, len(tops), 0, len(tops) - 1)]
    while ranges:
        low, high, first, last = ranges.pop()
        if low > high:
            continue
        middle = (low + high) // 2
        among = slice(first, min(last, middle - 1) + 1)
        totals = before[among] + tops[middle - 1] * (clips[middle] - clips[among])
        at = first + int(np.argmin(totals))
        best[middle], split[middle] = totals[at - first], at
        ranges += [(low, middle - 1, first, at), (middle + 1, high, at, last)]
    return best, split
