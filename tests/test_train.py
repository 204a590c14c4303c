"""Training from a folder of clips to a model's folder; and going on as if nothing had happened."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from tensorboard.backend.event_processing.event_accumulator import IMAGES, EventAccumulator
from training import config_for, corpus, trained

from myxtts.checkpoint import find
from myxtts.devices import DevicePlan
from myxtts.errors import UserError
from myxtts.model_folder.files import open_model_folder
from myxtts.model_folder.networks import load_codec, load_gpt
from myxtts.telemetry.record import FILE, read_events
from myxtts.train.taking import take_model

SHORT = {"training.stage": "dvae", "stages.dvae.steps": 4, "training.save_every": 2}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus(tmp_path_factory.mktemp("training") / "clips")


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


@pytest.fixture(scope="module")
def whole(data: Path, plan: DevicePlan, said: list[str]) -> Path:
    """Ten steps of the codec, then ten of the GPT."""
    return trained(config_for(data), plan, said=said)


def checkpoint(run: Path, stage: str) -> dict[str, bytes]:
    """Every array of a stage's newest checkpoint."""
    stored = find(run / stage, lambda _line: None)
    return {
        f"{group}/{name}": array.tobytes()
        for group in stored.groups
        for name, array in stored.arrays(group)
    }


def losses(run: Path, stage: str) -> dict[int, dict[str, float]]:
    """What each step's results were, over every start of the stage."""
    files = sorted((run / stage).glob(f"*/{FILE}"))
    events = [event for file in files for event in read_events(file) if event["kind"] == "results"]
    return {event["step"]: event["values"] for event in events}


def test_clips_become_a_model_folder_whose_networks_load(whole: Path, plan: DevicePlan) -> None:
    folder = open_model_folder(whole / "model")
    assert load_codec(folder, plan.model).codebook.vectors.shape == (32, 8)
    assert load_gpt(folder, plan.model).config.text_tokens == folder.model.gpt.text_tokens
    assert folder.mel_stats().min() > 0


def test_the_codebook_began_amid_its_vectors_and_is_used(whole: Path) -> None:
    counts = load_file(whole / "model" / "codec.safetensors")["codebook/counts"]
    assert (counts > 0.05 * counts.mean()).mean() > 0.5


def test_both_losses_fall(whole: Path) -> None:
    for stage in ("dvae", "gpt"):
        course = [values["loss"] for _, values in sorted(losses(whole, stage).items())]
        assert len(course) == 10
        assert course[-1] < course[0]


def test_the_schedule_and_the_shapes_are_told_before_the_first_step(said: list[str]) -> None:
    assert any(line.startswith("learning rate: 2 steps up to 0.002") for line in said)
    assert any(line.startswith("compiling: 2 of 2") for line in said)
    assert any("validation loss" in line for line in said)


@pytest.mark.parametrize("stage", ["dvae", "gpt"])
def test_ten_steps_equal_five_and_a_restart_and_five_more(
    stage: str, whole: Path, data: Path, plan: DevicePlan, tmp_path: Path
) -> None:
    broken = as_killed_after(5, whole, stage, tmp_path)
    trained(config_for(data), plan, broken)
    assert checkpoint(broken, stage) == checkpoint(whole, stage)
    after = {step: values for step, values in losses(whole, stage).items() if step > 5}
    assert losses(broken, stage) == after
    assert course(broken, stage, "loss/whole") == course(whole, stage, "loss/whole")


def as_killed_after(step: int, run: Path, stage: str, folder: Path) -> Path:
    """The run as it lay on the disk right after that step was saved, with the ring full."""
    copy = folder / run.name
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns(FILE))
    for saved in (copy / stage / "checkpoints").glob("step-*"):
        if int(saved.name[5:]) > step:
            shutil.rmtree(saved)
    unfinished = {"dvae": ("codec", "gpt"), "gpt": ("gpt",), "vocoder": ("vocoder",)}
    for part in unfinished[stage]:
        (copy / "model" / f"{part}.safetensors").unlink(missing_ok=True)
    if stage == "dvae":
        shutil.rmtree(copy / "gpt", ignore_errors=True)
    return copy


def test_the_board_has_the_numbers_of_log_and_judging(whole: Path) -> None:
    for stage in ("dvae", "gpt"):
        tags = {"lr", "gradient_norm", "busy/model", "busy/data", "waits/host", "audio_rate"}
        assert tags < set(board(whole, stage).Tags()["scalars"])
        told = {step: values["loss"] for step, values in losses(whole, stage).items()}
        shown = course(whole, stage, "loss/whole")
        assert shown == pytest.approx({step: told[step] for step in shown})
        assert list(course(whole, stage, "validation/loss")) == [5, 10]
        shares = course(whole, stage, "busy/data").values()
        assert max(shares) > 0
        assert all(0 <= share <= 1 for share in shares)
    used, perplexity = (course(whole, "dvae", f"codes/{name}") for name in ("used", "perplexity"))
    assert list(used) == list(perplexity) == list(shown)


def test_two_held_out_clips_are_pictured_in_both_stages(whole: Path) -> None:
    pictures = {stage: board(whole, stage) for stage in ("dvae", "gpt")}
    clips = {stage: each.Tags()["images"] for stage, each in pictures.items()}
    assert len(clips["dvae"]) == 2
    assert clips["dvae"] == clips["gpt"]
    for each in pictures.values():
        steps = [event.step for event in each.Images(clips["dvae"][0])]
        assert steps == [5, 10]
    frames, of_codes = (each.Images(clips["dvae"][0])[0].width for each in pictures.values())
    assert abs(of_codes - frames) < 4  # Whole codes have four frames each.


def board(run: Path, stage: str) -> EventAccumulator:
    events = EventAccumulator(str(run / stage / "board"), size_guidance={IMAGES: 0})
    events.Reload()
    return events


def course(run: Path, stage: str, tag: str) -> dict[int, float]:
    """A number of the board by its step; no step shows twice."""
    events = board(run, stage).Scalars(tag)
    found = {event.step: event.value for event in events}
    assert len(found) == len(events)
    return found


def test_a_finished_run_has_nothing_left_to_do(whole: Path, data: Path, plan: DevicePlan) -> None:
    before = checkpoint(whole, "gpt")
    trained(config_for(data), plan, whole)
    assert checkpoint(whole, "gpt") == before


def test_going_on_with_another_network_is_refused_by_name(
    whole: Path, data: Path, plan: DevicePlan, tmp_path: Path
) -> None:
    broken = as_killed_after(5, whole, "gpt", tmp_path)
    with pytest.raises(UserError, match=r"model\.gpt\.layers: saved 2, now 3"):
        trained(config_for(data, **{"model.gpt.layers": 3}), plan, broken)


def test_fine_tuning_starts_from_the_weights_of_a_model_folder(
    whole: Path, data: Path, plan: DevicePlan
) -> None:
    flags = {"training.start_from": str(whole / "model"), "stages.gpt.steps": 2}
    tuned = trained(config_for(data, **flags), plan)
    first = losses(tuned, "gpt")[1]["loss"]
    assert first < losses(whole, "gpt")[1]["loss"]
    assert not (tuned / "dvae").exists()
    kept = [folder / "model" / "codec.safetensors" for folder in (tuned, whole)]
    assert kept[0].read_bytes() == kept[1].read_bytes()


ARRANGED = {
    "two data devices": DevicePlan("split", ("/CPU:0", "/CPU:3"), ("/CPU:1", "/CPU:2")),
    "parallel": DevicePlan("parallel", ("/CPU:1", "/CPU:2"), ("/CPU:1", "/CPU:2")),
}


@pytest.mark.parametrize("arrangement", ARRANGED)
def test_a_run_goes_on_bit_same_in_any_arrangement(
    arrangement: str, data: Path, tmp_path: Path
) -> None:
    several = ARRANGED[arrangement]
    config = config_for(data, **SHORT, **{"telemetry.runs": str(tmp_path / "runs")})
    straight = trained(config, several)
    broken = as_killed_after(2, straight, "dvae", tmp_path)
    trained(config, several, broken)
    assert checkpoint(broken, "dvae") == checkpoint(straight, "dvae")


def test_how_many_devices_prepare_changes_no_bit(data: Path, tmp_path: Path) -> None:
    config = config_for(data, **SHORT, **{"telemetry.runs": str(tmp_path / "runs")})
    two = ARRANGED["two data devices"]
    one = replace(two, datas=two.datas[:1])
    runs = [trained(config, several) for several in (one, two)]
    assert checkpoint(runs[0], "dvae") == checkpoint(runs[1], "dvae")


def test_a_checkpoint_becomes_a_model_folder_of_its_own(
    whole: Path, plan: DevicePlan, tmp_path: Path
) -> None:
    said: list[str] = []
    take_model(whole / "gpt" / "checkpoints" / "step-00000010", tmp_path / "taken", said.append)
    files = [folder / "gpt.safetensors" for folder in (tmp_path / "taken", whole / "model")]
    taken, wrote = (load_file(file) for file in files)
    assert {n: a.tobytes() for n, a in taken.items()} == {n: a.tobytes() for n, a in wrote.items()}
    assert load_codec(open_model_folder(tmp_path / "taken"), plan.model)
    assert said == [f"{tmp_path / 'taken'}: gpt of step 10; no vocoder, speaker"]
