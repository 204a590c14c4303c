"""What TensorFlow's copy rule does to two GPUs: a model of it, since no GPU was at hand.

    .venv/bin/python benchmarks/copy_order.py

The rule, read in TensorFlow's sources: an eager copy to a GPU begins only when every step
queued there at that moment is done, and its caller waits for it. Two ways of buffering are
played through: one thread that extracts and copies into a ring on the model device, and a
ring on the data device with one batch more on the model's (`pipeline.Feed`).
Legend: milliseconds; a period is the time from one step's end to the next, on the device.
"""

import random
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean

STEPS = 2000
LAG = 2
DISPATCH_MS = 2.0
DEPTH = 3


@dataclass(frozen=True)
class Costs:
    """One kind of training, with the spread of its extraction."""

    step: float
    extract: float
    copy: float
    spread: float = 0.0

    def extracting(self, chance: random.Random) -> float:
        """One extraction; evenly spread around its mean."""
        return self.extract * (1 + self.spread * chance.uniform(-1, 1))


@dataclass
class Loop:
    """The training loop and its device: when each step was taken, queued and done."""

    taken: list[float] = field(default_factory=list)
    queued: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)

    def copied(self, asked: float) -> float:
        """When a copy that is asked for now begins: after every step queued by now."""
        recent = zip(self.queued[-8:], self.done[-8:], strict=True)
        return max([asked, *(done for queued, done in recent if queued <= asked)])

    def take_and_queue(self, costs: Costs, ready: float) -> None:
        """Takes the batch that is ready and queues its step, at most `LAG` ahead of results."""
        host = self.queued[-1] if self.queued else 0.0
        settled = self.done[-LAG - 1] if len(self.done) > LAG else 0.0
        self.taken.append(max(ready, host, settled))
        self.queued.append(self.taken[-1] + DISPATCH_MS)
        free = self.done[-1] if self.done else 0.0
        self.done.append(max(self.queued[-1], free) + costs.step)

    @property
    def period(self) -> float:
        """Mean of the second half, when all is steady."""
        half = self.done[STEPS // 2 :]
        return mean(after - before for before, after in pairwise(half))


def one_ring(costs: Costs) -> float:
    """The mean period when the thread that extracts also copies."""
    chance, loop, producer = random.Random(0), Loop(), 0.0  # noqa: S311
    for number in range(STEPS):
        # A slot is free when the batch that had it was taken.
        slot = loop.taken[number - DEPTH] if number >= DEPTH else 0.0
        asked = max(producer, slot) + costs.extracting(chance)
        producer = loop.copied(asked) + costs.copy
        loop.take_and_queue(costs, producer)
    return loop.period


def two_rings(costs: Costs) -> float:
    """The mean period with a ring of features, and a copier of its own that is one ahead."""
    chance, loop, extractor, copier = random.Random(0), Loop(), 0.0, 0.0  # noqa: S311
    handed: list[float] = []
    for number in range(STEPS):
        slot = handed[number - DEPTH] if number >= DEPTH else 0.0
        extractor = max(extractor, slot) + costs.extracting(chance)
        # The copier's one slot is free as soon as the loop takes the batch before.
        free = loop.taken[number - 1] if number else 0.0
        handed.append(max(copier, free, extractor))
        copier = loop.copied(handed[-1]) + costs.copy
        loop.take_and_queue(costs, copier)
    return loop.period


def main() -> None:
    """Prints both periods, and how busy the model device is."""
    print(f"{'step':>6}{'extract':>9}{'copy':>6}{'spread':>8}{'one ring':>18}{'two rings':>18}")
    for costs in (
        Costs(182, 60, 1),
        Costs(50, 20, 1),
        Costs(50, 20, 8),
        Costs(50, 40, 1, spread=0.5),
        Costs(20, 10, 1),
        Costs(20, 18, 1, spread=0.5),
    ):
        row = f"{costs.step:6.0f}{costs.extract:9.0f}{costs.copy:6.0f}{costs.spread:8.0%}"
        for period in (one_ring(costs), two_rings(costs)):
            row += f"{period:8.1f} ({costs.step / period:4.0%} busy)"
        print(row)


if __name__ == "__main__":
    main()
