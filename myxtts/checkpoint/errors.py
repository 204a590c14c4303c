"""What can be wrong with a checkpoint, and with the place it is saved to."""

from pathlib import Path

from myxtts.errors import UserError


class CheckpointError(UserError):
    """A checkpoint that is not there, or does not fit."""


class BrokenError(CheckpointError):
    """A checkpoint is not as it was written; `file` is where that shows."""

    def __init__(self, file: Path, fault: str) -> None:
        super().__init__(
            f"{file}: {fault}",
            "take another one: --resume auto takes the newest that is whole",
        )
        self.file = file
        self.fault = fault


class SaveError(UserError):
    """A checkpoint could not be saved; those before it are as they were."""

    exit_code = 1


def sized(count: int) -> str:
    """Bytes as people write them."""
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1e6:.2f} MB"
