"""The loop of every stage: batches come from the data device, the model device learns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from myxtts.learner import At, Learner
from myxtts.pipeline import Hands
from myxtts.run import Learned, Run
from myxtts.schedule import Schedule
from myxtts.train.memory import attributed
from myxtts.train.supply import Supply


class Course(NamedTuple):
    """Which steps are taken, and what happens at which of them."""

    first: int
    schedule: Schedule
    batches: int
    """Batches that one step learns from."""
    until: int | None = None
    """The last step that these devices take, where the run then goes on in another way."""

    @property
    def last(self) -> int:
        """The last step of the run."""
        return self.schedule.steps

    @property
    def end(self) -> int:
        """The last step that is taken now."""
        return min(self.until or self.last, self.last)

    @property
    def numbers(self) -> range:
        """The batches that are still to be learned from, by their numbers over the whole run."""
        return range((self.first - 1) * self.batches, self.end * self.batches)

    def at(self, step: int) -> At:
        """Where the run stands at a step."""
        return At(step, step / self.last, self.schedule.rate(step))


After = Callable[[int], bool]
"""What is done after a step; whether the run goes on."""


def run_steps(
    learner: Learner,
    groups: Iterable[Sequence[Hands]],
    course: Course,
    run: Run,
    supply: Supply,
    after: After,
) -> None:
    """Ten lines that every stage shares; whatever else there is stands around them."""
    # The range comes first, so zip never draws a batch it will not use.
    for step, batches in zip(range(course.first, course.end + 1), groups, strict=False):
        with run.step(batches[0][0].number):
            results = attributed(learner, batches, course.at(step), run.plan)
        with run.span("books"):
            batch = learned(batches, supply)
        run.queued(step, batch, results)
        if not after(step):
            break
    run.settle()


def grouped(hands: Iterable[Hands], size: int) -> Iterator[Sequence[Hands]]:
    """So many batches at a time; a last group of fewer is left out."""
    waiting = iter(hands)
    while len(group := list(islice(waiting, size))) == size:
        yield group


def learned(batches: Sequence[Hands], supply: Supply) -> Learned:
    """What the books keep of a step's batches."""
    names = tuple(name for hands in batches for hand in hands for name in hand.clips)
    seconds = sum(supply.seconds(hands[0].number) for hands in batches)
    return Learned(batches[0][0].number, names, seconds)
