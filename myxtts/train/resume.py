"""Which run goes on: the newest, or the one that is named."""

from pathlib import Path
from typing import NamedTuple

from myxtts.checkpoint.finding import is_checkpoint
from myxtts.devices import Say
from myxtts.errors import UserError
from myxtts.run import CONFIG_FILE

AUTO = "auto"
MODEL = "model"
"""The folder of a run that its parts are written to."""


class GoingOn(NamedTuple):
    """A run that goes on."""

    folder: Path
    checkpoint: Path | None = None
    """The one that was named, if one was; else each stage goes on from its newest."""


def run_to_resume(asked: str, runs: Path, say: Say) -> GoingOn | None:
    """The run that is meant; None where `auto` finds none, so that the same command also begins."""
    if asked == AUTO:
        found = [folder for folder in _folders(runs) if is_run(folder)]
        if not found:
            say(f"--resume auto: {runs} holds no run; a new one begins")
            return None
        return GoingOn(max(found, key=lambda folder: (folder / CONFIG_FILE).stat().st_mtime_ns))
    path = Path(asked).absolute()
    for folder in (path, *path.parents[:3]):
        if is_run(folder):
            return GoingOn(folder, path if is_checkpoint(path) else None)
    raise UserError(
        f"--resume {asked}: that is no run's folder, nor inside one",
        f"name a folder under {runs}, or auto for the newest",
    )


def is_run(folder: Path) -> bool:
    """Whether a training began here: its settings are written last of what it begins with."""
    return (folder / CONFIG_FILE).is_file() and (folder / MODEL).is_dir()


def _folders(runs: Path) -> list[Path]:
    return [path for path in runs.iterdir() if path.is_dir()] if runs.is_dir() else []
