"""One stage from its first step, or from a checkpoint, to its last."""

import contextlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from myxtts.checkpoint import (
    Change,
    Checkpoints,
    Goal,
    State,
    Stored,
    check_config,
    find,
    open_checkpoints,
    other_versions,
)
from myxtts.checkpoint.saver import Saver
from myxtts.config import Config
from myxtts.devices import DevicePlan, Say, explicit_moves
from myxtts.learner import Learner, Settings
from myxtts.pipeline import Feed, Program
from myxtts.run import NonFiniteError, Run, open_run
from myxtts.schedule import Schedule
from myxtts.stages import Stage
from myxtts.stages.stage import LOSS
from myxtts.train.compiling import compile_shapes
from myxtts.train.loop import Course, grouped, run_steps
from myxtts.train.signals import Stop
from myxtts.train.supply import Supply
from myxtts.train.validation import Judge
from myxtts.view.live import View, watch

CHECKPOINTS = "checkpoints"
GOAL = Goal("validation_loss")
FREE = ("data.num_workers", "data.prefetch", "data.buffer_size", "devices.", "pipeline.")
FREE_TOO = ("telemetry.", "training.log_every", "training.save_every", "training.keep")
LENGTHS = ("training.epochs", "training.max_steps", "training.validat", "stages.")


class Place(NamedTuple):
    """Where a stage is kept."""

    folder: Path
    checkpoint: Path | None = None
    """The checkpoint to go on from, where one was named."""


@dataclass
class Session:
    """What a stage's training holds in its hands."""

    config: Config
    plan: DevicePlan
    stage: Stage
    folder: Path
    supply: Supply
    judge: "Judge | None"
    learner: Learner
    course: Course
    metrics: dict[str, float] = field(default_factory=dict)
    best: tuple[int, float] | None = None


def train_stage(
    config: Config,
    plan: DevicePlan,
    stage: Stage,
    place: Place,
    supplies: tuple[Supply, Supply | None],
    say: Say,
) -> Learner:
    """Learns until the stage's last step; goes on from the newest checkpoint, or the named one."""
    folder = place.folder
    with contextlib.ExitStack() as stack:
        checkpoints = stack.enter_context(
            open_checkpoints(folder / CHECKPOINTS, config.training.keep, GOAL, say)
        )
        settings = Settings(stage.habits, config.training.seed, config.training.compile == "xla")
        learner = Learner(stage.student, plan.models, settings)
        stored = _checkpoint(place, checkpoints, say)
        course = _course(config, stage, supplies[0], stored)
        if stored:
            _restore(learner, stored, config, say)
        say(f"{stage.name}: {learner.described}")
        say(course.schedule.described())
        if course.first > course.last:
            say(f"{stage.name}: all {course.last} steps are done")
            return learner
        view = stack.enter_context(watch(course.last, course.first, stage.name, say))
        judge = Judge(supplies[1], learner, config.training) if supplies[1] else None
        session = Session(config, plan, stage, folder, supplies[0], judge, learner, course)
        if stored:
            _remember(session, stored)
        _run(session, checkpoints, view)
    return learner


def _checkpoint(place: Place, checkpoints: Checkpoints, say: Say) -> Stored | None:
    named = place.checkpoint
    if named and named.is_relative_to(place.folder.absolute()):
        return find(named, say)
    return checkpoints.newest()


def _run(session: Session, checkpoints: Checkpoints, view: View) -> None:
    config, learner, course = session.config, session.learner, session.course
    shapes = session.supply.shapes
    with (
        open_run(config, session.plan, view, session.folder, shapes) as run,
        Saver(checkpoints, run.recorder, view.say) as saver,
        explicit_moves(),
        Stop(view.say) as stop,
    ):
        compile_shapes(session.supply, learner, config.training, view)
        with session.supply.open(course.numbers, run.recorder) as feed:
            after = _after(session, run, feed, saver, stop)
            groups = grouped(feed, course.batches)
            run_steps(learner, groups, course, run, session.supply, after)
            run.log(feed, _traces(session))


def _after(
    session: Session, run: Run, feed: Feed, saver: Saver, stop: Stop
) -> Callable[[int], bool]:
    """What happens between two steps."""
    training, course = session.config.training, session.course

    def after(step: int) -> bool:
        last = step == course.last or stop.asked
        if step % training.log_every == 0:
            run.log(feed, _traces(session))
        if session.judge and (step % training.validate_every == 0 or step == course.last):
            _validate(session, run, step)
        if step % training.save_every == 0 or last:
            run.settle()  # Nothing is saved of steps whose results nobody has looked at.
            _tell(run.view, saver.settle())
            saver.save(_state(session, step))
        if last:
            _tell(run.view, saver.settle())
        session.metrics = {}
        return not stop.asked

    return after


def _tell(view: View, saved: Stored | None) -> None:
    """Only what the disk has is called saved."""
    if saved:
        view.saved(saved.record.step, saved.folder)


def _validate(session: Session, run: Run, step: int) -> None:
    assert session.judge is not None  # noqa: S101
    run.settle()
    with run.span("validate"):
        found = session.judge(run.recorder)
    session.metrics = {f"validation_{name}": value for name, value in found.items()}
    loss = found["loss"]
    if not math.isfinite(loss):
        raise NonFiniteError(
            f"step {step}: the loss of the held-out clips is {loss}",
            "look at the clips that judge, or lower the learning rate: training.lr",
        )
    if session.best is None or loss < session.best[1]:
        session.best = (step, loss)
    run.recorder.write({"kind": "validation", "step": step, **session.metrics})
    run.view.validation(step, loss, session.best)
    if apart := {name.removeprefix(LOSS): v for name, v in found.items() if name.startswith(LOSS)}:
        run.view.say("   loss by language: " + ", ".join(f"{k} {v:.3f}" for k, v in apart.items()))


def _course(config: Config, stage: Stage, supply: Supply, stored: Stored | None) -> Course:
    training, plan = config.training, supply.plan
    batches = training.gradient_accumulation_steps
    own = getattr(config.stages, stage.name)
    steps = own.steps or max(1, training.epochs * plan.batches_per_epoch // batches)
    steps = min(steps, training.max_steps or steps)
    schedule = Schedule(
        highest=training.lr or own.lr,
        steps=steps,
        warm_up=training.warmup_steps,
        shape=training.schedule,
        lowest_share=training.lowest_lr_share,
    )
    first = 1 if stored is None else stored.record.step + 1
    return Course(first, schedule, batches)


def _state(session: Session, step: int) -> State:
    plan = session.supply.plan
    position = plan.position(step * session.course.batches)
    return State(
        step=step,
        groups=session.learner.state,
        config=json.loads(session.config.model_dump_json()),
        facts={
            "stage": session.stage.name,
            "epoch": position.epoch,
            "index": position.index,
            "batches_per_epoch": plan.batches_per_epoch,
            "steps": session.course.last,
            "best": list(session.best) if session.best else None,
        },
        metrics=session.metrics,
    )


def _restore(learner: Learner, stored: Stored, config: Config, say: Say) -> None:
    present = json.loads(config.model_dump_json())
    changed = check_config(str(stored.folder), stored.record.config, present, _may_change)
    for change in [*changed, *other_versions(stored.record)]:
        say(f"   {change}")
    learner.restore(stored)
    say(f"going on from {stored.folder}, after step {stored.record.step}")


def _remember(session: Session, stored: Stored) -> None:
    best = stored.record.facts.get("best")
    session.best = (int(best[0]), float(best[1])) if best else None


def _may_change(change: Change) -> bool:
    return change.key.startswith(FREE + FREE_TOO + LENGTHS)


def _traces(session: Session) -> Mapping[str, int]:
    programs: list[Program] = [*session.supply.programs, *session.learner.programs]
    return {f"{p.name} on {p.device}": p.traces for p in programs}


def arrays(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables' numbers on the host."""
    return {name: tf.convert_to_tensor(v).numpy() for name, v in variables.items()}
