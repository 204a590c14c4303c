"""The whole pipeline on made-up clips: two devices, one ring, honest books."""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from myxtts.batch import Batch
from myxtts.config import Config, DataConfig, DevicesConfig, load_config
from myxtts.devices import DevicePlan, plan_devices
from myxtts.features import feature_extractor
from myxtts.noise import Noise
from myxtts.pipeline import Program, extract, move, transfer
from myxtts.rehearsal import (
    Learner,
    count_overlaps,
    count_traces,
    rehearse,
)
from myxtts.run import Learned, NonFiniteError, Run, open_run
from myxtts.telemetry.record import FILE, Recorder, read_events
from myxtts.view.live import Lines

NOISE = Noise(rows=6, clip_seconds=2.0, settings=DataConfig())
STEPS = 40
QUIET = Lines(lambda _line: None, time.perf_counter)


def config_in(folder: Path, **flags: object) -> Config:
    return load_config(size="tiny", flags={"telemetry.runs": str(folder), **flags})


@pytest.fixture(scope="module")
def run(plan: DevicePlan, tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = config_in(tmp_path_factory.mktemp("runs"))
    return rehearse(config, plan, STEPS, NOISE, lambda _line: None)


def test_every_step_is_booked_once_and_in_order(run: Run) -> None:
    assert [times.step for times in run.times] == list(range(1, STEPS + 1))


def test_the_parts_of_real_steps_sum_to_their_time_within_two_percent(run: Run) -> None:
    covered = sorted(sum(times.parts.values()) / times.host_seconds for times in run.times)
    assert 0.98 < covered[len(covered) // 2] <= 1.0 + 1e-9
    whole = sum(times.host_seconds for times in run.times)
    assert sum(sum(t.parts.values()) for t in run.times) == pytest.approx(whole, rel=0.02)


def test_batches_are_extracted_while_steps_run(run: Run) -> None:
    assert count_overlaps(run.folder) > STEPS / 2


def test_the_network_learns(run: Run) -> None:
    assert run.values["loss"] < 3.0  # It starts near 18.


def test_every_program_was_traced_once(plan: DevicePlan) -> None:
    config = config_in(Path("unused"))
    learner = Learner(config.model, config.training, plan.models)
    for batch in two_features(plan):
        learner((batch,))
    counts = count_traces(learner.programs)
    assert {name: n for name, n in counts.items() if n != 1} == {"average on /CPU:1": 0}


def two_features(plan: DevicePlan) -> Iterator[Batch]:
    silent = Recorder()
    program = Program(feature_extractor(DataConfig(), seed=0), plan.data)
    raw = replace(NOISE, rows=2).read(plan.data, silent)
    made = transfer(extract(raw, program, silent), plan.models, silent)
    yield from (next(made)[0] for _ in range(2))


def test_the_model_and_its_optimizer_live_on_the_model_device(plan: DevicePlan) -> None:
    config = config_in(Path("unused"))
    learner = Learner(config.model, config.training, plan.models)
    assert learner.places == {"/CPU:1": {"/CPU:1"}}


def test_two_model_devices_learn_what_one_learns_from_the_whole_batch(
    plan: DevicePlan, tmp_path: Path
) -> None:
    both = plan_devices(DevicesConfig(emulate=4, data_gpu=(0,), model_gpu=(1, 2)), [])
    features = next(two_features(plan)).tensors
    halves = [
        move({name: value[row : row + 1] for name, value in features.items()}, device)
        for row, device in enumerate(both.models)
    ]
    weights = []
    for devices, tensors in ((plan.models, [move(features, plan.model)]), (both.models, halves)):
        config = config_in(tmp_path)
        learner = Learner(config.model, config.training, devices)
        learner(tuple(Batch(0, (), part) for part in tensors))
        weights.append(learner.weights(plan.model))
    assert all(np.allclose(alone, both_, atol=1e-5) for alone, both_ in zip(*weights, strict=True))


def test_noise_is_a_function_of_seed_and_number(plan: DevicePlan) -> None:
    first, second, other = (
        next(replace(NOISE, seed=seed).read(plan.data, Recorder())).tensors["pcm"].numpy()
        for seed in (3, 3, 4)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_a_loss_that_is_no_number_stops_with_step_and_clips(
    plan: DevicePlan, tmp_path: Path
) -> None:
    with open_run(config_in(tmp_path), plan, QUIET, tmp_path) as run, tf.device(plan.model):
        with run.step(5):
            loss = tf.constant(float("nan"))
        run.queued(5, Learned(5, ("clip-a", "clip-b"), 2.0), {"loss": loss})
        with pytest.raises(NonFiniteError, match="step 5: loss is nan; its clips: clip-a, clip-b"):
            run.settle()


def test_two_runs_of_one_second_have_two_folders(plan: DevicePlan, tmp_path: Path) -> None:
    folders = set()
    for _ in range(3):
        with open_run(config_in(tmp_path), plan, QUIET, tmp_path) as run:
            folders.add(run.folder)
    assert len(folders) == 3


def test_a_batch_keeps_its_number_from_reading_to_learning(run: Run) -> None:
    events = [e for e in read_events(run.folder / FILE) if e["kind"] == "span"]
    lanes = {name: [e for e in events if e["name"] == name] for name in ("read", "step")}
    learned = [e["batch"] for e in lanes["step"] if e["thread"] == "device"]
    assert learned == list(range(STEPS))
    ended = {e["batch"]: e["start"] + e["seconds"] for e in lanes["read"]}
    assert all(ended[e["batch"]] <= e["start"] for e in lanes["step"])


def test_a_run_keeps_the_config_that_made_it(run: Run) -> None:
    assert load_config(run.folder / "config.yaml").model.size == "tiny"


def test_spans_of_one_thread_follow_one_another(run: Run) -> None:
    spans = [e for e in read_events(run.folder / FILE) if e["kind"] == "span"]
    producer = sorted((s for s in spans if s["thread"] == "extractor"), key=lambda s: s["start"])
    ends = [(a["start"] + a["seconds"], b["start"]) for a, b in pairwise(producer)]
    assert all(end <= start + 1e-6 for end, start in ends)
