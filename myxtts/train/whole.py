"""A training from clips to a model's folder: what is missing is made, stage after stage.

A run's folder holds `model`, which grows part by part, and one folder for each stage with its
checkpoints and, for each time it was started, its telemetry.
"""

import gc
import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from myxtts.checkpoint.disk import replace_file
from myxtts.clips import ClipSound, Part, find_parts, open_part, open_vocabulary
from myxtts.config import Config, to_yaml
from myxtts.devices import DevicePlan, Say
from myxtts.layers import Precision
from myxtts.learner import Learner
from myxtts.mel_levels import measure_levels
from myxtts.model_folder.files import (
    MEL_STATS,
    REFERENCE,
    REFERENCE_SETTINGS,
    VOICES,
    open_model_folder,
)
from myxtts.pipeline import ALONE_TEAM, Team
from myxtts.plan import Worker
from myxtts.run import CONFIG_FILE, new_folder
from myxtts.stages import DvaeStage, GptStage, Materials, Stage, VocoderStage
from myxtts.stages.tuning import merged
from myxtts.telemetry.record import Recorder
from myxtts.text import Tokenizer
from myxtts.train.abreast import agreed_folder, check_settings, see
from myxtts.train.legs import Clips, check_codes_last, legs_of
from myxtts.train.opening import pipeline_lines
from myxtts.train.precision import precision_of
from myxtts.train.resume import MODEL, GoingOn
from myxtts.train.session import Place, arrays, train_stage
from myxtts.train.start import adopted, check_start, with_vocabulary
from myxtts.train.vocoding import check_needed, long_enough

LEVEL_CLIPS = 2000
"""Clips, about, whose mels are measured: more say the same."""
STAGES: Mapping[str, Callable[[Config, Materials, Precision], Stage]] = {
    "dvae": DvaeStage,
    "gpt": GptStage,
    "vocoder": VocoderStage,
}
USUAL = ("dvae", "gpt")
"""What is trained when no stage is named; a vocoder is trained when it is asked for."""
PARTS = {"dvae": "codec", "gpt": "gpt", "vocoder": "vocoder"}
KEPT = ("codec", "gpt", "vocoder", "speaker")
BESIDE = (MEL_STATS, VOICES, REFERENCE, REFERENCE_SETTINGS)
STATS, MEAN = "mel_stats", "mel_mean"


def train(
    config: Config,
    plan: DevicePlan,
    going_on: GoingOn | None,
    say: Say,
    team: Team = ALONE_TEAM,
) -> Path:
    """Trains what is missing, in a new folder or in that of the run that goes on; gives it."""
    check_needed(config, going_on)
    config = adopted(config, say)
    check_settings(config, team)
    folder = agreed_folder(going_on, partial(_begun, config), config.telemetry.runs, team)
    say(f"run: {folder}")
    for line in pipeline_lines(config, plan):
        say(line)
    model = folder / MODEL
    with team.chief_first():  # It prepares the clips and writes what is common to all.
        parts = find_parts(config, open_vocabulary(config.text), say)
        config, tokenizer = with_vocabulary(config, parts[0], model, say)
        _measure(config, parts[0], plan, model)
    stages = _missing(config, model)
    check_codes_last(config, plan, stages)
    for name in stages:
        place = Place(folder / name, going_on.checkpoint if going_on else None, team)
        if not _train(name, config, plan, place, (parts, tokenizer), say):
            say("stopped: --resume auto goes on")
            break
    else:
        say(f"trained: {folder}")
    return folder


def _train(
    name: str,
    config: Config,
    plan: DevicePlan,
    place: Place,
    clips: tuple[tuple[Part, Part], Tokenizer],
    say: Say,
) -> bool:
    """Whether it was trained to its end."""
    say(f"stage {name}")
    parts, tokenizer = clips
    model = place.folder.parent / MODEL
    stage = _stage(name, config, plan, model, _judged(parts[1], tokenizer))
    read = None if name == "dvae" else tokenizer  # The codec reads no text.
    worker = Worker(place.team.index, place.team.count)
    if isinstance(stage, VocoderStage):
        parts = long_enough(parts, stage.shortest, say)
    legs = legs_of(stage, config, plan, Clips(parts, read, worker), model.parent, say)
    for leg in legs:
        outcome = train_stage(config, leg, stage, place, say)
        if not outcome.ended:
            return False
        if leg.until:
            # The other devices' copies go before the next leg's are made.
            ran, outcome = outcome.learner is not None, outcome._replace(learner=None)
            gc.collect()
            place = place._replace(checkpoint=None) if ran else place
    assert outcome.learner is not None  # noqa: S101
    file = model / f"{stage.part}.safetensors"
    if place.team.chief:
        weights = _finished(outcome.learner, stage.part)
        put(file, merged(arrays(weights), config.training.lora_scale))
    place.team.wait()
    see(file, place.team)
    say(f"{name}: {file}")
    return True


def _finished(learner: Learner, player: str) -> dict[str, Any]:
    """What speaks: averaged weights where there are any, frozen ones, the network's state."""
    groups = learner.state
    weights = learner.frozen | groups.get("ema", groups["weights"])
    split = ((name.partition("/"), weight) for name, weight in weights.items())
    named = {name: weight for (whose, _, name), weight in split if whose == player}
    return named | {name: v for name, v in groups.get("state", {}).items() if "/" in name}


def _begun(config: Config) -> Path:
    """A folder with the settings and, when a model is gone on from, its other parts."""
    folder = new_folder(config.telemetry.runs)
    (folder / MODEL).mkdir()
    if config.training.start_from:
        given = open_model_folder(config.training.start_from)
        own = PARTS[config.training.stage or "gpt"]
        kept = [given.file_of(part) for part in KEPT if part != own and given.has(part)]
        kept += [file for name in BESIDE if (file := given.path / name).is_file()]
        for file in kept:
            shutil.copyfile(file, folder / MODEL / file.name)
    # Last: from now on it is a run that can be gone on with.
    replace_file(folder / CONFIG_FILE, to_yaml(config).encode())
    return folder


def _measure(config: Config, part: Part, plan: DevicePlan, model: Path) -> None:
    """Writes the levels of the clips' mels; a model that is gone on from brings its own."""
    file = model / MEL_STATS
    if file.is_file():
        return
    reader = open_part(part, None, config, 1, lambda _line: None)
    batches = max(1, LEVEL_CLIPS // max(reader.plan.rows))
    numbers = range(min(reader.plan.batches_per_epoch, batches))
    sound = ClipSound(reader, config.data)
    levels = measure_levels(sound.read(plan.data, numbers, Recorder()), plan.data)
    put(file, {STATS: levels.spread_M, MEAN: levels.mean_M})


def _missing(config: Config, model: Path) -> list[str]:
    """The stages to train: the one that is asked for, or the codec and the GPT if not yet there."""
    if config.training.stage:
        return [config.training.stage]
    return [name for name in USUAL if not (model / f"{PARTS[name]}.safetensors").is_file()]


def _judged(part: Part, tokenizer: Tokenizer) -> dict[str, int]:
    """The languages of the clips that judge, with their tags' ids, where there are several."""
    languages = sorted(set(part.manifest.column("language")[part.rows].tolist()))
    several = languages if len(languages) > 1 else []
    return {language: tokenizer.tag_id(language) for language in several}


def _stage(
    name: str, config: Config, plan: DevicePlan, model: Path, languages: Mapping[str, int]
) -> Stage:
    levels = load_file(model / MEL_STATS)
    own = PARTS[name]
    files = {p: f for p in KEPT if p != own and (f := model / f"{p}.safetensors").is_file()}
    start = None
    if config.training.start_from:
        given = open_model_folder(config.training.start_from)
        start = given.file_of(own) if given.has(own) else None
    if start:
        check_start(start, model.parent)
    materials = Materials(levels[STATS], levels.get(MEAN), files, start, languages)
    return STAGES[name](config, materials, precision_of(config.training, plan))


def put(file: Path, content: Mapping[str, Any]) -> None:
    """Writes arrays to a file that is whole or not there."""
    beside = file.with_name(f".{file.name}.partial-{os.getpid()}")
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in content.items()}, beside)
        with beside.open("rb") as handle:
            os.fsync(handle.fileno())
        beside.rename(file)
    finally:
        beside.unlink(missing_ok=True)
