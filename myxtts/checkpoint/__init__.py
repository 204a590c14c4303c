"""Checkpoints: a run's state in a folder of safetensors and JSON, whole or not there.

`Saver`, which writes in a thread, is imported from its own module: it brings TensorFlow along.
"""

from myxtts.checkpoint.best import BEST, Goal
from myxtts.checkpoint.changes import (
    ABSENT,
    Change,
    ConfigChangedError,
    changes,
    check_config,
    other_versions,
)
from myxtts.checkpoint.errors import BrokenError, CheckpointError, SaveError
from myxtts.checkpoint.finding import CHECKPOINTS, find, newest
from myxtts.checkpoint.folder import Checkpoints, open_checkpoints
from myxtts.checkpoint.record import Record
from myxtts.checkpoint.slim import slim
from myxtts.checkpoint.state import EMA, WEIGHTS, State
from myxtts.checkpoint.stored import Stored, open_stored

__all__ = [
    "ABSENT",
    "BEST",
    "CHECKPOINTS",
    "EMA",
    "WEIGHTS",
    "BrokenError",
    "Change",
    "CheckpointError",
    "Checkpoints",
    "ConfigChangedError",
    "Goal",
    "Record",
    "SaveError",
    "State",
    "Stored",
    "changes",
    "check_config",
    "find",
    "newest",
    "open_checkpoints",
    "open_stored",
    "other_versions",
    "slim",
]
