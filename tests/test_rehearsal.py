"""The GPT's training on made-up clips: two devices, one ring, honest books, nothing kept."""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray
from training import TINY, corpus

from myxtts.clips import ClipSound, open_clips
from myxtts.config import Config, DevicesConfig, load_config
from myxtts.devices import DevicePlan, plan_devices
from myxtts.noise import open_noise
from myxtts.plan import NO_CLIP, Table
from myxtts.rehearsal import count_overlaps, open_learner, places, rehearse, small
from myxtts.run import Learned, NonFiniteError, Run, open_run
from myxtts.telemetry.record import FILE, Recorder, read_events
from myxtts.view.live import Lines

STEPS = 40
QUIET = Lines(lambda _line: None, time.perf_counter)


def config_in(folder: Path, **flags: object) -> Config:
    given = {**TINY, "training.lr": 0.01, "telemetry.runs": str(folder)}
    return load_config(flags=given | flags)


def noise(config: Config, devices: int = 1) -> ClipSound:
    return ClipSound(open_noise(config, 1.0, devices), config.data)


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


@pytest.fixture(scope="module")
def run(plan: DevicePlan, tmp_path_factory: pytest.TempPathFactory, said: list[str]) -> Run:
    config = config_in(tmp_path_factory.mktemp("runs"), **{"stages.gpt.ignored": "nothing"})
    return rehearse(config, plan, STEPS, noise(config), said.append)


def spans(run: Run, name: str) -> Iterator[dict[str, object]]:
    events = read_events(run.folder / FILE)
    yield from (e for e in events if e["kind"] == "span" and e["name"] == name)


def test_every_step_is_booked_once_and_in_order(run: Run) -> None:
    assert [times.step for times in run.times] == list(range(1, STEPS + 1))


def test_the_parts_of_real_steps_sum_to_their_time_within_two_percent(run: Run) -> None:
    covered = sorted(sum(times.parts.values()) / times.host_seconds for times in run.times)
    assert 0.98 < covered[len(covered) // 2] <= 1.0 + 1e-9
    whole = sum(times.host_seconds for times in run.times)
    assert sum(sum(t.parts.values()) for t in run.times) == pytest.approx(whole, rel=0.02)


def test_batches_are_extracted_while_steps_run(run: Run) -> None:
    assert count_overlaps(run.folder) > STEPS / 2


def test_the_gpt_itself_learns_with_both_losses(run: Run) -> None:
    events = [e for e in read_events(run.folder / FILE) if e["kind"] == "results"]
    first, last = (events[place]["values"]["loss_audio"] for place in (0, -1))
    assert last < first
    assert {"loss", "loss_text", "gradient_norm"} < set(run.values)


def test_nothing_is_kept_but_the_books_and_the_settings(run: Run) -> None:
    assert sorted(path.name for path in run.folder.iterdir()) == ["config.yaml", FILE]


def test_the_shapes_are_compiled_first_and_the_made_up_text_is_told(said: list[str]) -> None:
    beginnings = ("No vocabulary is named: the text is made up", "compiling: 0 of 1", "✅", "step")
    places = [next(n for n, line in enumerate(said) if line.startswith(b)) for b in beginnings]
    assert places == sorted(places)


def test_texts_of_a_vocabulary_are_not_made_up(plan: DevicePlan, tmp_path: Path) -> None:
    vocabulary = Path("tests/golden/tiny_vocab.json").absolute()
    flags = {"data.train": corpus(tmp_path / "clips", 9), "text.vocabulary": vocabulary}
    given = {key: str(value) for key, value in flags.items()}
    config = config_in(tmp_path / "runs", **given, **{"data.buckets": 1})
    lines: list[str] = []
    sound = ClipSound(open_clips(config, 1, lines.append), config.data)
    done = rehearse(config, plan, 2, sound, lines.append)
    assert np.isfinite(done.values["loss_text"])
    assert not any("made up" in line for line in lines)


def test_model_and_optimizer_live_on_the_model_device(plan: DevicePlan, tmp_path: Path) -> None:
    learner = open_learner(small(config_in(tmp_path)), plan)
    assert places(learner) == {"/CPU:1": {"/CPU:1"}}


def test_model_devices_that_prepare_for_themselves_each_read_noise(tmp_path: Path) -> None:
    asked = DevicesConfig(emulate=4, arrangement="parallel", model_gpu=(1, 2))
    both = plan_devices(asked, [])
    config = config_in(tmp_path, **{"data.batch_size": 2})
    done = rehearse(config, both, 3, noise(config, 2), lambda _line: None)
    assert [times.step for times in done.times] == [1, 2, 3]
    assert {span["device"] for span in spans(done, "extract")} == set(both.datas)


def test_noise_is_a_function_of_seed_and_clip(plan: DevicePlan, tmp_path: Path) -> None:
    first, second, other = (
        _read(config_in(tmp_path, **{"training.seed": seed}), plan) for seed in (3, 3, 4)
    )
    assert first.std() > 1000
    assert np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])
    assert not any(np.array_equal(row, mine) for row in other for mine in first)


def _read(config: Config, plan: DevicePlan) -> NDArray[np.int16]:
    batch = next(noise(config).read(plan.data, range(1), Recorder()))
    return np.asarray(batch.tensors["pcm"].numpy())


def test_a_row_of_noise_without_a_clip_is_silent(tmp_path: Path) -> None:
    source = open_noise(config_in(tmp_path), 1.0, 1).source
    with tf.device("/CPU:0"):
        table = Table(np.zeros(1, np.int32), np.array([[0, NO_CLIP]]))
        taken = source.inputs(table, np.array([64]), np.array([2]))
        picked = tf.nest.map_structure(lambda array: tf.constant(array[0]), taken)
        pcm_BS = source.read(picked, tf.constant(64)).numpy()
    assert pcm_BS[0].any()
    assert not pcm_BS[1].any()


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
    assert load_config(run.folder / "config.yaml").model.gpt.layers == 2


def test_spans_of_one_thread_follow_one_another(run: Run) -> None:
    found = [e for e in read_events(run.folder / FILE) if e["kind"] == "span"]
    producer = sorted((s for s in found if s["thread"] == "extractor"), key=lambda s: s["start"])
    ends = [(a["start"] + a["seconds"], b["start"]) for a, b in pairwise(producer)]
    assert all(end <= start + 1e-6 for end, start in ends)
