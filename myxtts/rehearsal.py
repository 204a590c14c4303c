"""The pipeline with a stand-in for the network: real programs, real moves, no voice.

It proves a set-up and shows where its time goes before a day is spent on it: the user's clips,
or noise of their length, become features on the data device, and a network of the configured
width and depth learns to foresee the next frames on the model device.
Legend: B batch, S samples, T frames, M mels, D width.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.batch import Batch, Tensors
from myxtts.config import Config, ModelConfig, TrainingConfig
from myxtts.devices import DevicePlan, Say, explicit_moves
from myxtts.errors import UserError
from myxtts.features import MELS, feature_extractor
from myxtts.pipeline import Feed, Program, extract, feed_split, finish, is_on, move
from myxtts.reader import clips_on_data_device
from myxtts.run import Learned, Run, open_run
from myxtts.telemetry.record import FILE, Recorder, read_events
from myxtts.view.live import watch

FRAMES_PER_TOKEN = 4


class TransferError(UserError):
    """A tensor did not arrive as it was sent."""

    exit_code = 1


class Sound(Protocol):
    """Where batches of clips come from."""

    @property
    def shapes(self) -> int:
        """In how many shapes they come: each is compiled once."""

    def open(
        self, device: str, steps: int, recorder: Recorder
    ) -> AbstractContextManager[Iterable[Batch]]:
        """Batches for so many steps, on `device`."""

    def seconds(self, number: int) -> float:
        """The sound in the batch with this number."""


def rehearse(config: Config, plan: DevicePlan, steps: int, sound: Sound, say: Say) -> Run:
    """Runs at most `steps` steps of the whole pipeline and gives the closed run with its books."""
    for line in pipeline_lines(config, plan):
        say(line)
    with (
        watch(steps, 1, "rehearsal", say) as view,
        open_run(config, plan, view, config.telemetry.runs, sound.shapes) as run,
    ):
        learner = Learner(config.model, config.training, plan.models)
        body = feature_extractor(config.data, config.training.seed)
        features = Program(body, plan.data, jit=config.training.compile == "xla", name="extract")
        with (
            sound.open(plan.data, steps, run.recorder) as raw,
            feed_split(
                [extract(raw, features, run.recorder)],
                plan.models,
                config.pipeline.depth,
                run.recorder,
            ) as ahead,
            explicit_moves(),
        ):
            wait_for_batches(ahead, config, plan, view.say)
            programs, traced = [features, *learner.programs], 0
            # The range comes first, so zip never draws a batch it will not use.
            for step, hands in zip(range(1, steps + 1), ahead, strict=False):
                with run.step(hands[0].number):
                    results = learner(hands)
                with run.span("books"):
                    before, traced = traced, sum(count_traces(programs).values())
                    batch = learned(hands, sound, compiled=traced > before)
                run.queued(step, batch, results)
                if step % config.training.log_every == 0:
                    run.log(ahead, count_traces(programs))
            run.settle()
            run.log(ahead, count_traces(programs))
    return run


def learned(hands: tuple[Batch, ...], sound: Sound, *, compiled: bool) -> Learned:
    """What the books keep of a batch."""
    names = tuple(name for hand in hands for name in hand.clips)
    return Learned(hands[0].number, names, sound.seconds(hands[0].number), compiled)


def pipeline_lines(config: Config, plan: DevicePlan) -> list[str]:
    """The guides' lines on the pipeline and on the model's place."""
    if len(plan.devices) == 1 or plan.arrangement == "single":
        return [f"Single-device mode: data and model on {plan.data} and {plan.model}"]
    indices = ", ".join(str(index) for index in plan.model_indices)
    datas = ", ".join(str(index) for index in plan.data_indices)
    ahead = clips_on_data_device(config.data)
    return [
        "🚀 Intelligent GPU Pipeline: Multi-GPU Mode",
        f"   - Data Processing GPU: {datas}",
        f"   - Model Training GPU: {indices}",
        f"   - Prefetching to {', '.join(plan.datas)} with buffer_size={ahead}",
        f"🎯 Multi-GPU Mode: Model will be placed on {', '.join(plan.models)}",
        f"   (Original GPU {indices} is now mapped to {', '.join(d[1:] for d in plan.models)})",
        *(f"Creating model on device: {device}" for device in plan.models),
    ]


def wait_for_batches(ahead: Feed, config: Config, plan: DevicePlan, say: Say) -> None:
    """Lets the ring fill before the first step, at most `pipeline.model_start_delay` seconds."""
    delay = config.pipeline.model_start_delay
    if plan.apart:
        say(f"🕐 Multi-GPU Mode: Waiting {delay}s for data pipeline to warm up...")
    full = ahead.fill(delay)
    if not full:
        say(f"   only {ahead.waiting} of {ahead.depth} batches are ready after {delay} s")
    say("✅ Model training starting now")


class Learner:
    """A copy of the network on each model device, kept equal by averaging gradients."""

    def __init__(self, model: ModelConfig, training: TrainingConfig, devices: Sequence[str]):
        self._copies = [_Copy(model, training, device) for device in devices]
        self._mean = Program(_mean, devices[0], name="average")

    def __call__(self, hands: tuple[Batch, ...]) -> dict[str, tf.Tensor]:
        """One step on one batch; the scalars are still on the first model device."""
        first = self._copies[0].device
        found = [c.gradients(hand.tensors) for c, hand in zip(self._copies, hands, strict=True)]
        loss, shared = found[0]
        if len(hands) > 1:
            loss, shared = self._mean([move(each, first) for each in found])
        for copy in self._copies:
            copy.update(shared if copy.device == first else move(shared, copy.device))
        return {"loss": loss}

    def weights(self, device: str) -> list[NDArray[np.float32]]:
        """The weights of the copy on a device."""
        (copy,) = (each for each in self._copies if each.device == device)
        return copy.weights()

    @property
    def places(self) -> dict[str, set[str]]:
        """Where each model device's copy keeps its variables."""
        return {copy.device: copy.places for copy in self._copies}

    @property
    def programs(self) -> list[Program]:
        """Everything it has compiled."""
        return [p for copy in self._copies for p in (copy.gradients, copy.update)] + [self._mean]


def count_traces(programs: Sequence[Program]) -> dict[str, int]:
    """How often each program was traced, by its name and device."""
    return {f"{program.name} on {program.device}": program.traces for program in programs}


class _Copy:
    def __init__(self, model: ModelConfig, training: TrainingConfig, device: str) -> None:
        self.device = device
        keras.utils.set_random_seed(training.seed)
        with tf.device(device):
            self._network = _network(model)
            self._weights = self._network.trainable_variables
            self._optimizer = keras.optimizers.AdamW(
                training.lr, weight_decay=training.weight_decay
            )
            self._optimizer.build(self._weights)
        jit = training.compile == "xla"
        self.gradients = Program(self._gradients, device, jit=jit, name="gradients")
        self.update = Program(self._update, device, name="update")

    def weights(self) -> list[NDArray[np.float32]]:
        """What the copy has learned so far."""
        return [weight.numpy() for weight in self._weights]

    @property
    def places(self) -> set[str]:
        """The devices that hold a variable of this copy, as "/CPU:1"."""
        variables = [*self._weights, *self._optimizer.variables]
        return {"/" + v.value.device.rpartition("device:")[2] for v in variables}

    def _gradients(self, features: Tensors) -> tuple[tf.Tensor, list[tf.Tensor]]:
        mel_BTM, weights_B = features["mel"], features["weights"]
        batch, frames, mels = mel_BTM.shape
        tokens = frames // FRAMES_PER_TOKEN
        whole_BTM = mel_BTM[:, : tokens * FRAMES_PER_TOKEN]
        tokens_BTD = tf.reshape(whole_BTM, [batch, tokens, mels * FRAMES_PER_TOKEN])
        with tf.GradientTape() as tape:
            foreseen_BTD = self._network(tokens_BTD[:, :-1])
            error_B = tf.reduce_mean(tf.square(foreseen_BTD - tokens_BTD[:, 1:]), [1, 2])
            # A row without a clip weighs nothing.
            loss = tf.reduce_sum(error_B * weights_B) / tf.maximum(tf.reduce_sum(weights_B), 1.0)
        return loss, tape.gradient(loss, [w.value for w in self._weights])

    def _update(self, gradients: list[tf.Tensor]) -> None:
        self._optimizer.apply(gradients, self._weights)


def _network(model: ModelConfig) -> keras.Model:
    token = keras.Input([None, MELS * FRAMES_PER_TOKEN])
    hidden = keras.layers.Dense(model.gpt.width)(token)
    for _ in range(model.gpt.layers):
        wide = keras.layers.Dense(4 * model.gpt.width, activation="gelu")(
            keras.layers.LayerNormalization()(hidden)
        )
        hidden = hidden + keras.layers.Dense(model.gpt.width)(wide)
    return keras.Model(token, keras.layers.Dense(token.shape[-1])(hidden))


def _mean(found: list[tuple[tf.Tensor, list[tf.Tensor]]]) -> tuple[tf.Tensor, list[tf.Tensor]]:
    losses, gradients = zip(*found, strict=True)
    means = [tf.add_n(list(each)) / len(found) for each in zip(*gradients, strict=True)]
    return tf.add_n(list(losses)) / len(found), means


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
