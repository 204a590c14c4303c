"""Extract, transfer, run ahead: the data device prepares while the model device learns."""

from myxtts.pipeline.feed import Feed
from myxtts.pipeline.program import OutOfMemoryError, Program, WrongDeviceError, is_on
from myxtts.pipeline.results import LateResults, StepResult
from myxtts.pipeline.ring import (
    ConsumerDiedError,
    ProducerDiedError,
    ProducerStuckError,
    RunAhead,
    run_ahead,
)
from myxtts.pipeline.stages import extract, finish, move, transfer

__all__ = [
    "ConsumerDiedError",
    "Feed",
    "LateResults",
    "OutOfMemoryError",
    "ProducerDiedError",
    "ProducerStuckError",
    "Program",
    "RunAhead",
    "StepResult",
    "WrongDeviceError",
    "extract",
    "finish",
    "is_on",
    "move",
    "run_ahead",
    "transfer",
]
