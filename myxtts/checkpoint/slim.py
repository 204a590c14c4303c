"""A small copy of a checkpoint for speaking: the weights alone, averaged ones if there are any."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from myxtts.checkpoint.disk import make_folder, telling
from myxtts.checkpoint.errors import CheckpointError, SaveError
from myxtts.checkpoint.state import EMA, WEIGHTS, State
from myxtts.checkpoint.stored import Stored, room_of, write_stored
from myxtts.checkpoint.tensor_file import StoredArray


def slim(checkpoint: Stored, out: Path) -> Stored:
    """Copies the weights to a folder that is new or empty; EMA takes the place of its weights."""
    checkpoint.check()
    record = checkpoint.record
    state = State(
        step=record.step,
        groups={WEIGHTS: _weights(checkpoint)},
        config=record.config,
        facts=record.facts,
    )
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise SaveError(f"{out} is there already", "name a folder that is new or empty")
    files = {name: asdict(file) for name, file in record.files.items()}
    made_from = {"step": record.step, "saved_at": record.saved_at, "files": files}
    with telling(out, room_of(state)):
        make_folder(out.absolute().parent)
        written = write_stored(out.absolute(), state, record.serial, made_from)
    return replace(written, folder=out)


def _weights(checkpoint: Stored) -> Mapping[str, StoredArray]:
    groups = checkpoint.groups
    if WEIGHTS not in groups:
        raise CheckpointError(f"{checkpoint.folder} has no {WEIGHTS}", "name a whole checkpoint")
    # What is not averaged (a codebook, running statistics) stays as it is.
    strange = sorted(groups.get(EMA, {}).keys() - groups[WEIGHTS].keys())
    if strange:
        raise CheckpointError(f"{checkpoint.folder} averages what is no weight: {strange[0]}")
    return groups[WEIGHTS] | groups.get(EMA, {})
