"""A model's folder out of any checkpoint: small, to speak with or to go on from.

The run's other parts are copied beside the weights that the checkpoint holds.
"""

import shutil
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file

from myxtts.checkpoint import EMA, WEIGHTS, Stored, find
from myxtts.devices import Say
from myxtts.errors import UserError
from myxtts.model_folder.files import PARTS
from myxtts.model_folder.new_folder import new_folder
from myxtts.stages.tuning import merged
from myxtts.train.resume import MODEL, is_run
from myxtts.train.start import check_start

STATE = "state"
PART_OF = {"dvae": "codec", "gpt": "gpt", "vocoder": "vocoder"}


def take_model(path: Path, out: Path, say: Say) -> None:
    """Writes the folder; `path` is a checkpoint, or a folder whose newest one is taken."""
    stored = find(path, say)
    run = next((folder for folder in stored.folder.absolute().parents if is_run(folder)), None)
    if run is None:
        raise UserError(
            f"{stored.folder} lies in no run's folder, where the model's other files are",
            "name a checkpoint where its training left it",
        )
    part = PART_OF[str(stored.record.facts["stage"])]
    training, model = stored.record.config["training"], run / MODEL
    weights = merged(
        _base(training["start_from"], part, run) | weights_of(stored, part), training["lora_scale"]
    )
    others = [f for f in model.iterdir() if f.is_file() and f.stem != part and f.name[0] != "."]
    size = sum(array.nbytes for array in weights.values()) + sum(f.stat().st_size for f in others)
    with new_folder(out, size) as made:
        for file in others:
            shutil.copyfile(file, made / file.name)
        save_file(weights, made / f"{part}.safetensors")
    absent = [name for name in PARTS if not (out / f"{name}.safetensors").is_file()]
    say(
        f"{out}: {part} of step {stored.record.step}" + (f"; no {', '.join(absent)}" * bool(absent))
    )


def _base(start: str | None, part: str, run: Path) -> dict[str, Any]:
    """What the training went on from: frozen weights are in no checkpoint."""
    file = Path(start) / f"{part}.safetensors" if start else None
    if file is None or not file.is_file():
        return {}
    check_start(file, run)
    return load_file(file)


def weights_of(stored: Stored, player: str) -> dict[str, Any]:
    """One player's weights by the network's own names, averaged ones where there are any."""
    groups = stored.groups
    chosen = dict(groups[WEIGHTS]) | dict(groups.get(EMA, {}))
    named = {
        name.partition("/")[2]: array.numpy()
        for name, array in chosen.items()
        if name.partition("/")[0] == player
    }
    state = {name: a.numpy() for name, a in groups.get(STATE, {}).items() if "/" in name}
    return named | state
