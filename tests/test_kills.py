"""Two hundred random deaths: no hang, no thread left, and the first error is the one shown."""

import ctypes
import itertools
import random
import signal
import threading
import time
from collections.abc import Iterator

import pytest
import tensorflow as tf

from myxtts.batch import Batch
from myxtts.devices import DevicePlan, explicit_moves
from myxtts.pipeline import (
    Feed,
    LateResults,
    ProducerDiedError,
    Program,
    extract,
    feed_split,
)
from myxtts.telemetry.record import Recorder

DEATHS_EACH = 50
IN_EVERY_TEST_RUN = 5
DEATHS = [
    pytest.param(seed, marks=[pytest.mark.campaign] if seed >= IN_EVERY_TEST_RUN else [])
    for seed in range(DEATHS_EACH)
]
LONGEST_LIFE = 0.08
"""Seconds; a batch takes a few milliseconds, so deaths fall in every phase."""
GONE_AFTER = 5.0
SILENT = Recorder()
PRODUCERS = ("extractor", "mover")


class Death(Exception):  # noqa: N818  It is no fault of the code.
    """What the killer throws."""


class Trial:
    """One pipeline on two devices, as the loop runs it, with a death on its way."""

    def __init__(self, plan: DevicePlan, seed: int) -> None:
        self.plan = plan
        self.random = random.Random(seed)  # noqa: S311
        self.fails_at = -1
        self.began = threading.Event()
        self.features = Program(lambda x, _number: tf.matmul(x, x), plan.data, name="extract")
        self.step = Program(lambda x: {"loss": tf.reduce_sum(x)}, plan.model, name="step")

    def clips(self) -> Iterator[Batch]:
        for number in itertools.count():
            if number == self.fails_at:
                raise Death("clip")
            with tf.device(self.plan.data):
                clip = tf.ones([192, 192])
            yield Batch(number, ("a",), clip)

    def ahead(self) -> Feed:
        stages = extract(self.clips(), self.features, SILENT)
        return feed_split([stages], self.plan.models, 3, SILENT)

    def loop(self, stop_at: int = -1) -> None:
        with LateResults(2, SILENT) as late, self.ahead() as ahead, explicit_moves():
            for number, (batch,) in enumerate(ahead):
                self.began.set()
                late.put(number, self.step(batch.tensors))
                if number == stop_at:
                    raise Death("step")

    def some_time(self) -> float:
        return self.random.uniform(0.0, LONGEST_LIFE)


def kill(thread: threading.Thread) -> None:
    """Until it is dead: Python drops what is raised inside a finaliser."""
    while thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Death)
        )
        thread.join(0.5)


def pipeline_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name in (*PRODUCERS, "results")]


def assert_no_thread_is_left() -> None:
    deadline = time.monotonic() + GONE_AFTER
    while pipeline_threads() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert pipeline_threads() == []


@pytest.mark.parametrize("seed", DEATHS)
def test_an_error_in_the_producer_ends_the_loop(plan: DevicePlan, seed: int) -> None:
    trial = Trial(plan, seed)
    trial.fails_at = trial.random.randrange(20)
    with pytest.raises(Death, match="clip"):
        trial.loop()
    assert_no_thread_is_left()


@pytest.mark.parametrize("seed", DEATHS)
def test_a_killed_producer_ends_the_loop(plan: DevicePlan, seed: int) -> None:
    trial = Trial(plan, seed)

    def killer() -> None:
        # Not at its birth: Python may then hit the thread that is being started instead.
        trial.began.wait(GONE_AFTER)
        time.sleep(trial.some_time())
        victim = trial.random.choice(PRODUCERS)
        kill(next(t for t in pipeline_threads() if t.name == victim))

    assassin = threading.Thread(target=killer)
    assassin.start()
    with pytest.raises((Death, ProducerDiedError)):
        trial.loop()
    assassin.join()
    assert_no_thread_is_left()


@pytest.mark.parametrize("seed", DEATHS)
def test_a_killed_consumer_takes_its_threads_along(plan: DevicePlan, seed: int) -> None:
    trial, shown = Trial(plan, seed), []

    def consume() -> None:
        try:
            trial.loop(stop_at=seed % 10 if seed % 2 else -1)
        except Death as death:
            shown.append(death)

    consumer = threading.Thread(target=consume)
    consumer.start()
    if seed % 2 == 0:
        trial.began.wait(GONE_AFTER)
        time.sleep(trial.some_time())
        kill(consumer)
    consumer.join(GONE_AFTER)
    assert not consumer.is_alive()
    assert len(shown) == 1
    assert_no_thread_is_left()


@pytest.mark.parametrize("seed", DEATHS)
def test_ctrl_c_ends_the_loop_at_any_moment(plan: DevicePlan, seed: int) -> None:
    trial = Trial(plan, seed)
    main = threading.main_thread()
    timer = threading.Timer(
        trial.some_time(), lambda: signal.pthread_kill(main.ident or 0, signal.SIGINT)
    )
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        trial.loop()
    timer.join()
    assert_no_thread_is_left()
