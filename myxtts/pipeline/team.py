"""What several machines say to each other: sums and lists, each a step that all take together.

Legend: N numbers of one worker; W workers, N together. Everything crosses on the host.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.devices.cluster import Cluster, first_line
from myxtts.errors import UserError
from myxtts.pipeline.stages import move

HOST = "/CPU:0"
GROUP = 7001
"""TensorFlow's own groups begin at 1."""
PIECE = 4_000_000
"""Numbers that cross at a time: both fewer and more were slower (docs/many-machines.md)."""
PATIENCE_SECONDS = 1800.0
"""How long one worker waits for the others in a step; one whose process ends is noticed sooner."""
LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
)


class WorkerLostError(UserError):
    """Another machine's worker has ended or can no longer be reached."""

    exit_code = 1


class Team:
    """The workers of a run; every one makes the same calls in the same order, in one thread."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.index = cluster.index if cluster else 0
        self.count = cluster.count if cluster else 1
        self._addresses = cluster.addresses if cluster else ()
        self._instances = itertools.count(1)

    @property
    def chief(self) -> bool:
        """Whether this worker is the one that writes."""
        return self.index == 0

    @property
    def alone(self) -> bool:
        """Whether there is no other worker."""
        return self.count == 1

    def total(self, values_N: tf.Tensor) -> tf.Tensor:
        """The sum over the workers, the same bits on each, on the host."""
        if self.alone:
            return values_N
        values_N = move(values_N, HOST)
        with tf.device(HOST):
            size = int(values_N.shape[0])
            parts = [
                self._reduced(values_N[first : first + PIECE], PATIENCE_SECONDS)
                for first in range(0, size, PIECE)
            ]
            return parts[0] if len(parts) == 1 else tf.concat(parts, 0)

    def gathered(self, values_N: tf.Tensor) -> tf.Tensor:
        """Every worker's values, one behind the other, on the host."""
        if self.alone:
            return values_N
        return self._crossing(tf.raw_ops.CollectiveGatherV2, move(values_N, HOST), PATIENCE_SECONDS)

    def sums(self, values: Mapping[str, float]) -> dict[str, float]:
        """Named numbers summed over the workers, which all have the same names."""
        if self.alone:
            return dict(values)
        with tf.device(HOST):
            mine_N = tf.constant(list(values.values()), tf.float64)
        return dict(zip(values, self.total(mine_N).numpy().tolist(), strict=True))

    def any(self, *, flag: bool) -> bool:
        """Whether one worker at least says so."""
        return bool(flag) if self.alone else self.sums({"flag": float(flag)})["flag"] > 0

    def wait(self) -> None:
        """Until all workers are here, however long that takes."""
        if not self.alone:
            self._told_numbers(np.zeros(1, np.int32))

    def told(self, text: str) -> str:
        """The chief's text, on every worker."""
        if self.alone:
            return text
        own = np.frombuffer(text.encode(), np.uint8).astype(np.int32)
        size = int(self._told_numbers(np.array([len(own)], np.int32))[0])
        padded = np.resize(own, size) if size else own
        heard = self._told_numbers(padded) if size else own
        return heard.astype(np.uint8).tobytes().decode()

    def unlike(self, digest: bytes) -> list[int]:
        """The workers whose digest is not the chief's."""
        if self.alone:
            return []
        with tf.device(HOST):
            mine = tf.constant(np.frombuffer(digest, np.int32))
        each = self.gathered(mine).numpy().reshape(self.count, -1)
        return [worker for worker in range(self.count) if (each[worker] != each[0]).any()]

    @contextlib.contextmanager
    def chief_first(self) -> Iterator[None]:
        """The block runs on the chief, then on the others: they find what it has made."""
        if not self.chief:
            self.wait()
        yield
        if self.chief:
            self.wait()
        self.wait()

    def _told_numbers(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The chief's numbers; the others only say how many."""
        own = numbers if self.chief else np.zeros_like(numbers)
        with tf.device(HOST):
            mine = tf.constant(own)
        # 0: without a limit, for the chief may be preparing clips for hours.
        heard: NDArray[np.int32] = self._reduced(mine, 0.0).numpy()
        return heard

    def _reduced(self, values_N: tf.Tensor, seconds: float) -> tf.Tensor:
        return self._crossing(
            tf.raw_ops.CollectiveReduceV2, values_N, seconds, merge_op="Add", final_op="Id"
        )

    def _crossing(
        self, take: Callable[..., Any], values: tf.Tensor, seconds: float, **how: str
    ) -> tf.Tensor:
        try:
            with tf.device(HOST):
                return take(
                    input=values,
                    group_size=self.count,
                    group_key=GROUP,
                    instance_key=next(self._instances),
                    ordering_token=[],
                    communication_hint="ring",
                    timeout_seconds=seconds,
                    **how,
                )
        except LOST as error:
            raise self._lost(error) from error

    def _lost(self, error: tf.errors.OpError) -> WorkerLostError:
        others = [
            f"worker {place} ({address})"
            for place, address in enumerate(self._addresses)
            if place != self.index
        ]
        return WorkerLostError(
            f"worker {self.index} can go on no further without {' or '.join(others)}: "
            f"{first_line(error.message)}",
            "see that worker's own output for why it ended; then start all workers again "
            "as before, with --resume auto",
        )


ALONE_TEAM = Team()
