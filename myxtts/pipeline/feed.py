"""Two rings in a row: finished features wait on the data device, one batch more on the model's.

A copy off a GPU waits for the steps that are queued on the model device when it begins. So
the copy of the next batch begins as soon as the loop takes this one, before its step is
queued; and what runs further ahead waits where memory is not scarce.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType

from myxtts.batch import Batch
from myxtts.pipeline.ring import RunAhead, run_ahead
from myxtts.pipeline.stages import transfer
from myxtts.telemetry.record import Recorder
from myxtts.telemetry.steps import EXTRACTOR, MOVER

Hands = tuple[Batch, ...]
"""One batch, shared out to the model devices."""


class Feed(Iterator[Hands]):
    """What the loop iterates: batches on the model devices, prepared `depth` ahead.

    Each lane makes features in a thread of its own, on a device of its own; `join` makes of all
    of them what the model devices take.
    """

    def __init__(
        self,
        lanes: Sequence[Iterable[Batch]],
        join: Callable[[Sequence[Iterator[Batch]]], Iterator[Hands]],
        depth: int,
        recorder: Recorder,
    ) -> None:
        self.depth = depth
        names = [EXTRACTOR, *(f"{EXTRACTOR} {place}" for place in range(1, len(lanes)))]
        self._made: list[RunAhead[Batch]] = [
            run_ahead(lane, depth, recorder, thread=name)
            for lane, name in zip(lanes, names, strict=True)
        ]
        self._moved = run_ahead(join(self._made), 1, recorder, thread=MOVER)

    def __next__(self) -> Hands:
        return next(self._moved)

    @property
    def waiting(self) -> int:
        """How many finished batches wait on the data devices now: the shortest lane's count."""
        return min(made.waiting for made in self._made)

    def fill(self, seconds: float) -> bool:
        """Waits until all rings are full or the source has ended, at most `seconds`."""
        full = self._moved.fill(seconds)
        return full and all(made.fill(seconds) for made in self._made)

    def close(self) -> None:
        """Stops every thread, those that feed the mover first."""
        with ExitStack() as stack:
            stack.callback(self._moved.close)
            for made in self._made:
                stack.callback(made.close)

    def __enter__(self) -> "Feed":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with ExitStack() as stack:
            stack.push(lambda *_: self._moved.__exit__(kind, error, trace))
            for made in self._made:
                stack.push(_leaving(made, kind, error, trace))


def _leaving(
    made: RunAhead[Batch],
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> Callable[..., None]:
    return lambda *_: made.__exit__(kind, error, trace)


def feed_split(
    lanes: Sequence[Iterable[Batch]], devices: Sequence[str], depth: int, recorder: Recorder
) -> Feed:
    """Data devices take turns; each batch is moved and shared out to the model devices."""
    return Feed(lanes, lambda made: transfer(in_turn(made), devices, recorder), depth, recorder)


def feed_parallel(lanes: Sequence[Iterable[Batch]], depth: int, recorder: Recorder) -> Feed:
    """Every model device prepares its own share of each batch: nothing is moved."""
    return Feed(lanes, lambda made: zip(*made, strict=True), depth, recorder)


def in_turn(lanes: Sequence[Iterator[Batch]]) -> Iterator[Batch]:
    """One batch of each lane after the other, until the lane whose turn it is has ended."""
    while True:
        for lane in lanes:
            batch = next(lane, None)
            if batch is None:
                return
            yield batch
