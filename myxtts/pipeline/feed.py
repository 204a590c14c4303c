"""Two rings in a row: finished features wait on the data device, one batch more on the model's.

A copy off a GPU waits for the steps that are queued on the model device when it begins. So
the copy of the next batch begins as soon as the loop takes this one, before its step is
queued; and what runs further ahead waits where memory is not scarce.
"""

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType

from myxtts.batch import Batch
from myxtts.pipeline.ring import run_ahead
from myxtts.pipeline.stages import transfer
from myxtts.telemetry.record import Recorder
from myxtts.telemetry.steps import EXTRACTOR, MOVER


class Feed(Iterator[tuple[Batch, ...]]):
    """What the loop iterates: batches on the model devices, prepared `depth` ahead."""

    def __init__(
        self, features: Iterable[Batch], devices: Sequence[str], depth: int, recorder: Recorder
    ) -> None:
        self.depth = depth
        self._made = run_ahead(features, depth, recorder, thread=EXTRACTOR)
        moved = transfer(self._made, devices, recorder)
        self._moved = run_ahead(moved, 1, recorder, thread=MOVER)

    def __next__(self) -> tuple[Batch, ...]:
        return next(self._moved)

    @property
    def waiting(self) -> int:
        """How many finished batches wait on the data device now."""
        return self._made.waiting

    def fill(self, seconds: float) -> bool:
        """Waits until both rings are full or the source has ended, at most `seconds`."""
        return self._moved.fill(seconds) and self._made.fill(seconds)

    def close(self) -> None:
        """Stops both threads, the one that feeds the other first."""
        try:
            self._made.close()
        finally:
            self._moved.close()

    def __enter__(self) -> "Feed":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._made.__exit__(kind, error, trace)
        finally:
            self._moved.__exit__(kind, error, trace)
