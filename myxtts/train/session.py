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
from myxtts.pipeline import ALONE_TEAM, Feed, OutOfMemoryError, Program, Team
from myxtts.run import NonFiniteError, Run, open_run
from myxtts.schedule import Schedule
from myxtts.stages import Stage
from myxtts.stages.stage import LOSS
from myxtts.train.abreast import (
    Unsaved,
    Unseen,
    agreed_checkpoint,
    books_of,
    check_alike,
    crossing_line,
    keep_alike,
)
from myxtts.train.compiling import compile_shapes
from myxtts.train.legs import Leg
from myxtts.train.loop import Course, grouped, run_steps
from myxtts.train.opening import wait_for_batches
from myxtts.train.showing import Camera, Showing, camera_of, open_showing
from myxtts.train.signals import Stop
from myxtts.train.supply import Supply
from myxtts.train.validation import Judge
from myxtts.view.live import View, watch

CHECKPOINTS = "checkpoints"
GOAL = Goal("validation_loss")
FREE = ("data.num_workers", "data.prefetch", "data.buffer_size", "devices.", "pipeline.")
FREE_TOO = ("telemetry.", "training.log_every", "training.save_every", "training.keep")
SHOWN = ("training.pictures_every", "data.cache")
LENGTHS = ("training.epochs", "training.max_steps", "training.validat", "stages.")


class Place(NamedTuple):
    """Where a stage is kept."""

    folder: Path
    checkpoint: Path | None = None
    """The checkpoint to go on from, where one was named."""
    team: Team = ALONE_TEAM
    """The machines that learn together."""


class Outcome(NamedTuple):
    """How a leg went."""

    learner: Learner | None
    """None where nothing was left to do."""
    ended: bool
    """Whether its last step is done; else it was asked to stop."""


@dataclass
class Session:
    """What a stage's training holds in its hands."""

    config: Config
    plan: DevicePlan
    stage: Stage
    place: Place
    supply: Supply
    judge: "Judge | None"
    learner: Learner
    course: Course
    numbers: range
    """The batches of the course, as the supply's plan counts them."""
    metrics: dict[str, float] = field(default_factory=dict)
    best: tuple[int, float] | None = None


def train_stage(config: Config, leg: Leg, stage: Stage, place: Place, say: Say) -> Outcome:
    """Learns until a leg's last step; goes on from the newest checkpoint, or the named one."""
    with contextlib.ExitStack() as stack:
        checkpoints = stack.enter_context(_checkpoints(place, config, say))
        stored = _stored(place, checkpoints, say)
        course = _course(config, stage, leg, stored)
        if course.first > course.end < course.last:
            return Outcome(None, ended=True)  # The leg after this one goes on.
        settings = Settings(stage.habits, config.training.seed, config.training.compile == "xla")
        learner = Learner(stage.student, leg.plan.models, settings, place.team)
        if stored:
            _restore(learner, stored, config, say)
        say(f"{stage.name}: {learner.described}")
        say(course.schedule.described())
        if not place.team.alone:
            say(crossing_line(learner, place.team))
        if course.first > course.last:
            say(f"{stage.name}: all {course.last} steps are done")
            return Outcome(learner, ended=True)
        view = stack.enter_context(watch(course.last, course.first, stage.name, say))
        numbers = leg.own(course.numbers)
        supply, judging = stack.enter_context(leg.supplies(view, numbers))
        supply.shift = leg.shift
        check_alike(learner, supply.plan, place.team)
        judge = Judge(judging, learner, config.training, place.team) if judging else None
        session = Session(config, leg.plan, stage, place, supply, judge, learner, course, numbers)
        if stored:
            _remember(session, stored)
        ended = _run(session, checkpoints, view)
    return Outcome(learner, ended)


def _checkpoints(
    place: Place, config: Config, say: Say
) -> contextlib.AbstractContextManager[Checkpoints | None]:
    """The chief's; the other machines write none."""
    if not place.team.chief:
        return contextlib.nullcontext()
    return open_checkpoints(place.folder / CHECKPOINTS, config.training.keep, GOAL, say)


def _stored(place: Place, checkpoints: Checkpoints | None, say: Say) -> Stored | None:
    if checkpoints is None:
        return agreed_checkpoint(None, place.folder / CHECKPOINTS, place.team, say)
    named = place.checkpoint
    own = named and named.is_relative_to(place.folder.absolute())
    stored = find(named, say) if named and own else checkpoints.newest()
    return agreed_checkpoint(stored, place.folder / CHECKPOINTS, place.team, say)


def _run(session: Session, checkpoints: Checkpoints | None, view: View) -> bool:
    """Whether it came to its last step."""
    config, learner, course = session.config, session.learner, session.course
    shapes, place = session.supply.shapes, session.place
    with (
        open_run(config, session.plan, view, books_of(place.folder, place.team), shapes) as run,
        Saver(checkpoints, run.recorder, view.say) if checkpoints else Unsaved() as saver,
        _showing(session) as showing,
        explicit_moves(),
        Stop(view.say) as stop,
    ):
        if config.training.oom == "shrink":
            learner.shrunk = _shrinking(view)
        compile_shapes(session.supply, learner, config.training, view)
        with session.supply.open(session.numbers, run.recorder) as feed:
            wait_for_batches(feed, config, session.plan, view.say)
            after = _after(session, run, feed, (saver, showing), stop)
            groups = grouped(feed, course.batches)
            run_steps(learner, groups, course, run, session.supply, after)
            showing.log(run, run.log(feed, _traces(session)))
            asked = place.team.any(flag=stop.asked)
    return not asked


def _showing(session: Session) -> contextlib.AbstractContextManager[Showing]:
    if not session.place.team.chief:
        return contextlib.nullcontext(Unseen())
    return open_showing(session.place.folder, session.course, _camera(session))


def _shrinking(view: View) -> Callable[[OutOfMemoryError, int], None]:
    def shrunk(error: OutOfMemoryError, pieces: int) -> None:
        view.say(f"⚠ {error.problem}: such batches are learned in {pieces} pieces from now on")

    return shrunk


def _after(
    session: Session, run: Run, feed: Feed, keepers: tuple[Saver, Showing], stop: Stop
) -> Callable[[int], bool]:
    """What happens between two steps."""
    training, course = session.config.training, session.course
    saver, showing = keepers
    team, learner = session.place.team, session.learner

    def after(step: int) -> bool:
        asked = team.any(flag=stop.asked)  # One machine's signal ends all of them at this step.
        last = step == course.end or asked
        if step % training.log_every == 0:
            showing.log(run, run.log(feed, _traces(session)))
        if session.judge and (step % training.validate_every == 0 or step == course.last):
            showing.validation(step, _validate(session, run, step))
        if training.pictures_every and step % training.pictures_every == 0:
            with run.span("pictures"):
                showing.pictures(step)
        if step % training.save_every == 0 or last:
            run.settle()  # Nothing is saved of steps whose results nobody has looked at.
            keep_alike(learner, step, run, team)
            _tell(run.view, saver.settle())
            saver.save(_state(session, step))
        if last:
            _tell(run.view, saver.settle())
        session.metrics = {}
        return not asked

    return after


def _tell(view: View, saved: Stored | None) -> None:
    """Only what the disk has is called saved."""
    if saved:
        view.saved(saved.record.step, saved.folder)


def _validate(session: Session, run: Run, step: int) -> dict[str, float]:
    assert session.judge is not None  # noqa: S101
    run.settle()
    with run.span("validate"):
        found = session.judge(run.view)
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
    return found


def _camera(session: Session) -> Camera | None:
    """Of the clips that judge where there are any: those are always the same."""
    if not session.config.training.pictures_every:
        return None
    supply = session.judge.supply if session.judge else session.supply
    return camera_of(session.stage, session.learner, supply, session.plan)


def _course(config: Config, stage: Stage, leg: Leg, stored: Stored | None) -> Course:
    training = config.training
    schedule = Schedule(
        highest=training.lr or stage.rate,
        steps=leg.steps,
        warm_up=training.warmup_steps,
        shape=training.schedule,
        lowest_share=training.lowest_lr_share,
    )
    first = 1 if stored is None else stored.record.step + 1
    return Course(first, schedule, training.gradient_accumulation_steps, leg.until)


def _state(session: Session, step: int) -> State:
    supply = session.supply
    position = supply.plan.position(step * session.course.batches - supply.shift)
    return State(
        step=step,
        groups=session.learner.state,
        config=json.loads(session.config.model_dump_json()),
        facts={
            "stage": session.stage.name,
            "epoch": position.epoch,
            "index": position.index,
            "batches_per_epoch": supply.plan.batches_per_epoch,
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
    return change.key.startswith(FREE + FREE_TOO + SHOWN + LENGTHS)


def _traces(session: Session) -> Mapping[str, int]:
    programs: list[Program] = [*session.supply.programs, *session.learner.programs]
    return {f"{p.name} on {p.device}": p.traces for p in programs}


def arrays(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables' numbers on the host."""
    return {name: tf.convert_to_tensor(v).numpy() for name, v in variables.items()}
