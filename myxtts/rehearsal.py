"""The GPT's training as it will be, on the user's clips or on noise, and nothing of it kept.

It proves a set-up and shows where its time goes before a day is spent on it. The network, the
programs and the moves are those of training; only the codec's weights are random, which takes
as long, and texts are made up where no vocabulary is named.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.clips import ClipSound
from myxtts.codec import Codec
from myxtts.config import Config, ModelConfig
from myxtts.devices import DevicePlan, Say, explicit_moves
from myxtts.errors import UserError
from myxtts.features import MELS
from myxtts.learner import Learner, Settings
from myxtts.noise import TOKENS_A_SECOND, made_up_texts
from myxtts.pipeline import Feed, Program, finish, is_on, move
from myxtts.plan import Worker, make_plan
from myxtts.run import Run, open_run
from myxtts.schedule import Schedule
from myxtts.stages import GptStage, Materials
from myxtts.telemetry.record import FILE, read_events
from myxtts.text import read_vocabulary
from myxtts.text.vocabulary import START, STOP
from myxtts.train.compiling import compile_shapes
from myxtts.train.loop import Course, grouped, run_steps
from myxtts.train.opening import pipeline_lines, wait_for_batches
from myxtts.train.precision import precision_of
from myxtts.train.supply import Supply
from myxtts.view.live import watch

SMALL: Mapping[str, Any] = {
    "size": "tiny",
    "gpt": {"layers": 2, "width": 64, "heads": 2},
    "codec": {"code_width": 16, "width": 16, "residual_blocks": 1},
}
"""The network that checks a set-up: whatever size is asked for, a check takes seconds."""


class TransferError(UserError):
    """A tensor did not arrive as it was sent."""

    exit_code = 1


class RehearsedStage(GptStage):
    """The GPT's stage before there is a codec."""

    def fill(self, codec: Codec) -> None:
        """Random weights stay: they encode as fast as others."""


def rehearse(config: Config, plan: DevicePlan, steps: int, sound: ClipSound, say: Say) -> Run:
    """Trains for `steps` steps, saves nothing, and gives the closed run with its books."""
    for line in pipeline_lines(config, plan):
        say(line)
    config = _with_vocabulary(config)
    stage, training = _stage(config, plan), config.training
    learner = open_learner(config, plan)
    supply = Supply(_sounds(sound, config, plan, say), stage, plan, config.pipeline.depth)
    course = _course(config, steps)
    programs = [*supply.programs, *learner.programs]
    with (
        watch(steps, 1, "rehearsal", say) as view,
        open_run(config, plan, view, config.telemetry.runs, supply.shapes) as run,
        explicit_moves(),
    ):
        compile_shapes(supply, learner, training, view)
        with supply.open(course.numbers, run.recorder) as feed:
            wait_for_batches(feed, config, plan, view.say)
            after = _log(run, feed, programs, training.log_every)
            run_steps(learner, grouped(feed, course.batches), course, run, supply, after)
            run.log(feed, count_traces(programs))
    return run


def open_learner(config: Config, plan: DevicePlan) -> Learner:
    """The GPT on every model device, from random numbers."""
    stage, training = _stage(config, plan), config.training
    settings = Settings(stage.habits, training.seed, training.compile == "xla")
    return Learner(stage.student, plan.models, settings)


def small(config: Config) -> Config:
    """The same set-up with a network of few numbers, in graph mode, which compiles soonest."""
    training = config.training.model_copy(update={"compile": "graph"})
    text = config.text.model_copy(update={"vocabulary": None})
    sections = {"model": ModelConfig.model_validate(SMALL), "training": training, "text": text}
    return config.model_copy(update=sections)


def places(learner: Learner) -> dict[str, set[str]]:
    """Where each model device's copy keeps its weights, state and moments, as "/CPU:1"."""
    return {
        copy.device: {
            "/" + tf.convert_to_tensor(variable).device.rpartition("device:")[2]
            for variable in (*copy.alike.values(), *copy.optimizer.variables.values())
        }
        for copy in learner.copies
    }


def count_traces(programs: Sequence[Program]) -> dict[str, int]:
    """How often each program was traced, by its name and device."""
    return {f"{program.name} on {program.device}": program.traces for program in programs}


def _with_vocabulary(config: Config) -> Config:
    """The network with the tables of the vocabulary that is named, if one is."""
    if config.text.vocabulary is None:
        return config
    vocabulary = read_vocabulary(config.text.vocabulary)
    ends = {"text_start": vocabulary.tokens[START], "text_stop": vocabulary.tokens[STOP]}
    gpt = config.model.gpt.model_copy(update={"text_tokens": len(vocabulary), **ends})
    return config.model_copy(update={"model": config.model.model_copy(update={"gpt": gpt})})


def _stage(config: Config, plan: DevicePlan) -> RehearsedStage:
    materials = Materials(np.ones([MELS], np.float32))
    return RehearsedStage(config, materials, precision_of(config.training, plan))


def _sounds(sound: ClipSound, config: Config, plan: DevicePlan, say: Say) -> list[ClipSound]:
    """With texts; one for all model devices, or one for each where they prepare it themselves."""
    reader, seed = sound.reader, config.training.seed
    samples = reader.source.samples
    if reader.texts is None:
        say(f"No vocabulary is named: the text is made up, {TOKENS_A_SECOND} tokens a second.")
        reader = reader._replace(texts=made_up_texts(samples, config.model.gpt, seed))
    count = len(plan.models)
    if plan.apart or count == 1:
        return [ClipSound(reader, sound.settings)]
    workers = [Worker(index, count) for index in range(count)]
    plans = [make_plan(samples, config.data, seed, worker=worker) for worker in workers]
    return [ClipSound(reader._replace(plan=each), sound.settings) for each in plans]


def _course(config: Config, steps: int) -> Course:
    """At one learning rate: nothing is to come of it."""
    training = config.training
    rate = training.lr or config.stages.gpt.lr
    schedule = Schedule(rate, steps, 0, "constant", 1.0)
    return Course(1, schedule, training.gradient_accumulation_steps)


def _log(run: Run, feed: Feed, programs: Sequence[Program], every: int) -> Callable[[int], bool]:
    def after(step: int) -> bool:
        if step % every == 0:
            run.log(feed, count_traces(programs))
        return True

    return after


def try_transfer(source: str, target: str, megabytes: int) -> float:
    """Moves known numbers and compares every one; the seconds that the second move took."""
    with tf.device(source):
        sent = tf.reshape(tf.range(megabytes * 2**18, dtype=tf.float32), [megabytes, -1])
    move(sent, target)  # The first move allocates.
    start = time.perf_counter()
    arrived = move(sent, target)
    finish(arrived)
    seconds = time.perf_counter() - start
    if not is_on(arrived, target) or not np.array_equal(arrived.numpy(), sent.numpy()):
        raise TransferError(f"what was sent from {source} did not arrive on {target} as it was")
    return seconds


def count_overlaps(folder: Path) -> int:
    """In how many steps of a run, as the device worked, some batch was being extracted."""
    spans = [event for event in read_events(folder / FILE) if event["kind"] == "span"]
    made = [_interval(span) for span in spans if span["name"] == "extract"]
    # The device's own lane: in the loop's a step is over when it is queued.
    steps = [_interval(s) for s in spans if s["name"] == "step" and s["thread"] == "device"]
    return sum(any(start < end_ and start_ < end for start_, end_ in made) for start, end in steps)


def _interval(span: dict[str, Any]) -> tuple[float, float]:
    return span["start"], span["start"] + span["seconds"]
