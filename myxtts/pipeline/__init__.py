"""Extract, transfer, run ahead: the data device prepares while the model device learns."""

from myxtts.pipeline.feed import Feed, Hands, feed_parallel, feed_split, in_turn
from myxtts.pipeline.program import (
    NewShapeError,
    OutOfMemoryError,
    Program,
    WrongDeviceError,
    is_on,
)
from myxtts.pipeline.results import LateResults, StepResult
from myxtts.pipeline.ring import (
    ConsumerDiedError,
    ProducerDiedError,
    ProducerStuckError,
    RunAhead,
    run_ahead,
)
from myxtts.pipeline.stages import extract, finish, move, share_of, transfer
from myxtts.pipeline.team import ALONE_TEAM, Team, WorkerLostError

__all__ = [
    "ALONE_TEAM",
    "ConsumerDiedError",
    "Feed",
    "Hands",
    "LateResults",
    "NewShapeError",
    "OutOfMemoryError",
    "ProducerDiedError",
    "ProducerStuckError",
    "Program",
    "RunAhead",
    "StepResult",
    "Team",
    "WorkerLostError",
    "WrongDeviceError",
    "extract",
    "feed_parallel",
    "feed_split",
    "finish",
    "in_turn",
    "is_on",
    "move",
    "run_ahead",
    "share_of",
    "transfer",
]
