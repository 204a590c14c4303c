"""Which checkpoint is the best so far, and the small file that says so.

The metrics stand in every checkpoint's own record, so the file is for readers only.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from myxtts.checkpoint.disk import replace_file
from myxtts.checkpoint.errors import CheckpointError
from myxtts.checkpoint.stored import Stored

BEST = "best.json"


@dataclass(frozen=True)
class Goal:
    """What makes a checkpoint the best."""

    metric: str
    highest: bool = False
    """Whether more is better, as of a similarity; of a loss less is."""

    def best(self, checkpoints: Iterable[Stored]) -> Stored | None:
        """The best of them; of two that are alike the one that was saved later."""
        judged = [s for s in checkpoints if s.record.metrics.get(self.metric) is not None]
        return max(judged, key=self._rank, default=None)

    def _rank(self, stored: Stored) -> tuple[float, int]:
        value = float(stored.record.metrics[self.metric] or 0.0)
        return (value if self.highest else -value), stored.record.serial


def point_at(folder: Path, best: Stored | None, goal: Goal) -> None:
    """Brings best.json in line with what is best."""
    if best is None:
        return
    said = {
        "checkpoint": best.folder.name,
        "step": best.record.step,
        "metric": goal.metric,
        "value": best.record.metrics[goal.metric],
    }
    if _read(folder / BEST) != said:
        replace_file(folder / BEST, json.dumps(said, indent=1).encode() + b"\n")


def pointed_at(file: Path) -> Path:
    """The checkpoint that best.json names."""
    match _read(file):
        case {"checkpoint": str(name)} if Path(name).name == name:
            return file.parent / name
    raise CheckpointError(f"{file} names no checkpoint", f"--resume {file.parent} takes the newest")


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
