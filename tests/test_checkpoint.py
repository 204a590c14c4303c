"""Checkpoints: every bit comes back, the newest whole one is found, the right ones are kept."""

import fcntl
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from safetensors import safe_open

from myxtts.checkpoint import (
    CheckpointError,
    Goal,
    SaveError,
    State,
    Stored,
    changes,
    check_config,
    find,
    newest,
    open_checkpoints,
    open_stored,
    other_versions,
    slim,
)
from myxtts.checkpoint import folder as folder_module
from myxtts.checkpoint.changes import Change, ConfigChangedError

Arrays = dict[str, np.ndarray[Any, Any]]
AWKWARD = np.array([math.nan, -math.nan, -0.0, math.inf, 1e-45, 1.0])


def every_kind() -> Arrays:
    floats = (np.float64, np.float32, np.float16, bfloat16)
    whole = (np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8)
    arrays: Arrays = {f"f/{np.dtype(kind).name}": AWKWARD.astype(kind) for kind in floats}
    arrays |= {f"i/{np.dtype(k).name}": np.array([np.iinfo(k).max, 3], k) for k in whole}
    arrays["payload"] = np.array([0x7FC00123, 0xFFA00001], np.uint32).view(np.float32)
    arrays["bool"] = np.array([[True], [False], [True]])
    arrays["scalar"] = np.array(7, np.int64)
    arrays["empty"] = np.zeros((0, 3), np.float32)
    arrays["strided"] = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    arrays["foreign"] = np.arange(3, dtype=">f4")
    return arrays


def state(step: int = 1, loss: float = 1.0, **facts: Any) -> State:
    weights = {"w": np.full((2, 3), step, np.float32)}
    moments: Arrays = {"w/m": np.full((2, 3), -step, np.float32), "steps": np.array(step, np.int64)}
    config = {"training": {"lr": 1e-4, "seed": 0}}
    groups = {"weights": weights, "optimizer": moments}
    return State(step, groups, config, facts, {"loss": loss})


def save_all(folder: Path, *states: State, keep: int = 9, goal: Goal | None = None) -> list[Stored]:
    with open_checkpoints(folder, keep, goal, pytest.fail) as checkpoints:
        return [checkpoints.save(one) for one in states]


def steps(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("step-"))


def flip(file: Path, place: int, bit: int = 0) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


class Variable:
    """As much of a variable as restoring needs."""

    def __init__(self, shape: tuple[int, ...] = (2, 3), kind: Any = np.float32) -> None:
        self.value = np.zeros(shape, kind)
        self.shape, self.dtype = self.value.shape, self.value.dtype

    def assign(self, array: np.ndarray[Any, Any]) -> None:
        self.value = array


def test_every_kind_of_number_comes_back_bit_for_bit(tmp_path: Path) -> None:
    arrays = every_kind()
    [saved] = save_all(tmp_path, State(1, {"weights": arrays}))
    back = dict(open_stored(saved.folder).arrays("weights"))
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (back[name].dtype.name, back[name].shape) == (array.dtype.name, array.shape)
        assert back[name].tobytes() == array.astype(back[name].dtype).tobytes(), name


def test_the_library_reads_what_we_write(tmp_path: Path) -> None:
    arrays = every_kind()
    [saved] = save_all(tmp_path, State(1, {"weights": arrays}))
    with safe_open(saved.folder / "weights.safetensors", framework="numpy") as stored:
        assert set(stored.keys()) == set(arrays)
        assert stored.get_slice("strided").get_shape() == [2, 3]
        assert stored.get_tensor("strided").tolist() == arrays["strided"].tolist()


def test_facts_config_and_metrics_come_back_as_they_were(tmp_path: Path) -> None:
    facts = {"stage": "gpt", "position": {"epoch": 2, "index": 7}, "scale": 2.0**15, "زبان": "fa"}
    [saved] = save_all(tmp_path, state(5, loss=math.nan, **facts))
    record = open_stored(saved.folder).record
    assert (record.step, record.facts, record.config) == (5, facts, state().config)
    assert record.metrics == {"loss": None}
    assert {"myxtts", "python", "numpy", "keras", "tensorflow"} <= record.versions.keys()
    assert other_versions(record) == []


@pytest.mark.parametrize("fact", [(1, 2), {1: 2}, Path("x"), math.inf, {"deep": [math.nan]}])
def test_a_fact_that_json_would_change_is_refused_before_anything_is_written(fact: Any) -> None:
    with pytest.raises(ValueError, match="seed"):
        State(1, {}, facts={"seed": fact})


def test_a_name_or_a_kind_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="complex64"):
        State(1, {"weights": {"w": np.zeros(2, np.complex64)}})
    with pytest.raises(ValueError, match="small letters"):
        State(1, {"../weights": {}})


def test_a_run_that_saved_nothing_starts_anew(tmp_path: Path) -> None:
    assert newest(tmp_path / "absent", pytest.fail) is None
    with open_checkpoints(tmp_path / "runs" / "a" / "checkpoints", 3) as checkpoints:
        assert checkpoints.newest() is None
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        find(tmp_path / "runs", pytest.fail)
    with pytest.raises(CheckpointError, match="does not exist"):
        find(tmp_path / "absent", pytest.fail)


def test_a_path_may_be_any_of_seven_things(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "a" / "gpt" / "checkpoints"
    first, last = save_all(folder, state(1, loss=0.1), state(2, loss=0.2), goal=Goal("loss"))
    (tmp_path / "runs" / "b").mkdir()  # A run that was killed before its first save.
    for path in (last.folder, *last.folder.parents[:4]):
        assert find(path, pytest.fail) == last
    assert find(folder / "best.json", pytest.fail) == first
    assert find(first.folder / "checkpoint.json", pytest.fail) == first


def test_the_newest_of_several_runs_is_the_one_saved_last(tmp_path: Path) -> None:
    save_all(tmp_path / "b" / "checkpoints", state(9, stage="dvae"))
    [last] = save_all(tmp_path / "a" / "checkpoints", state(3, stage="gpt"))
    assert newest(tmp_path, pytest.fail) == last
    other = newest(tmp_path, pytest.fail, lambda record: record.facts["stage"] == "dvae")
    assert other is not None
    assert other.record.step == 9
    with pytest.raises(CheckpointError, match="of that kind"):
        find(tmp_path, pytest.fail, lambda record: record.facts["stage"] == "vocoder")


def test_the_newest_few_are_kept_and_the_best(tmp_path: Path) -> None:
    losses = [3.0, 1.0, math.nan, 2.0, 1.5, 1.2]
    states = [state(step, loss) for step, loss in enumerate(losses, 1)]
    save_all(tmp_path, *states, keep=2, goal=Goal("loss"))
    assert steps(tmp_path) == ["step-00000002", "step-00000005", "step-00000006"]
    best = json.loads((tmp_path / "best.json").read_text())
    assert (best["checkpoint"], best["step"], best["value"]) == ("step-00000002", 2, 1.0)


def test_the_best_may_be_the_highest(tmp_path: Path) -> None:
    states = [state(step, value) for step, value in enumerate([0.5, 0.9, 0.9, 0.1], 1)]
    save_all(tmp_path, *states, keep=1, goal=Goal("loss", highest=True))
    assert steps(tmp_path) == ["step-00000003", "step-00000004"]


def test_a_run_resumed_from_an_older_step_keeps_what_it_saves(tmp_path: Path) -> None:
    save_all(tmp_path, state(10), state(20), state(30))
    again = save_all(tmp_path, state(20, loss=0.5), state(21), keep=2)
    assert steps(tmp_path) == ["step-00000020-2", "step-00000021"]
    assert newest(tmp_path, pytest.fail) == again[-1]


def test_a_second_run_may_not_save_to_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    def busy(*_: Any) -> None:
        raise BlockingIOError

    monkeypatch.setattr(folder_module, "LOCK_SECONDS", 0.0)
    (tmp_path / ".lock").write_text("4711")
    monkeypatch.setattr(fcntl, "lockf", busy)
    with (
        pytest.raises(CheckpointError, match=r"another run \(process 4711\)"),
        open_checkpoints(tmp_path, 1, say=taken.append),
    ):
        pytest.fail("two runs write to one folder")


def test_variables_get_their_arrays(tmp_path: Path) -> None:
    [saved] = save_all(tmp_path, state(4))
    weights = {"w": Variable()}
    optimizer = {"w/m": Variable(), "steps": Variable((), np.int64)}
    saved.restore({"weights": weights, "optimizer": optimizer})
    assert weights["w"].value.tolist() == [[4.0] * 3] * 2
    assert optimizer["steps"].value == 4
    given: list[int] = []
    saved.restore({"weights": weights}, lambda _variable, array: given.append(array.size))
    assert given == [6]


def test_what_does_not_fit_is_named_before_anything_is_assigned(tmp_path: Path) -> None:
    [saved] = save_all(tmp_path, state(4))
    wrong = {"weights": {"w": Variable((3, 2)), "b": Variable()}, "optimizer": {}, "ema": {}}
    with pytest.raises(CheckpointError) as raised:
        saved.restore(wrong)
    for part in (
        "missing weights/b",
        "unexpected optimizer/steps",
        "weights/w is F32[2, 3], wanted is F32[3, 2]",
        "it has no ema",
    ):
        assert part in raised.value.problem
    assert not wrong["weights"]["w"].value.any()
    half = {"weights": {"w": Variable((2, 3), np.float16)}}
    with pytest.raises(CheckpointError, match=r"F32\[2, 3\], wanted is F16"):
        saved.restore(half)


def test_another_configuration_is_told_key_by_key() -> None:
    saved = {"training": {"lr": 1e-4, "save_every": 100}, "model": {"size": "tiny", "old": 1}}
    now = {"training": {"lr": 2e-4, "save_every": 50, "ema": 0.9}, "model": {"size": "tiny"}}
    with pytest.raises(ConfigChangedError) as raised:
        check_config("step-1", saved, now, lambda change: change.key.endswith("save_every"))
    assert raised.value.problem.splitlines() == [
        "step-1 was saved with other settings:",
        "  training.lr: saved 0.0001, now 0.0002",
        "  model.old: saved 1, now (absent)",
        "  training.ema: saved (absent), now 0.9",
    ]
    assert "training.lr=0.0001" in raised.value.remedy


def test_a_change_that_is_allowed_is_handed_back() -> None:
    saved, now = {"a": {"b": [1, 2]}, "c": 1}, {"a": {"b": [1, 3]}, "c": 1}
    assert check_config("x", saved, now, lambda _: True) == [Change("a.b", [1, 2], [1, 3])]
    assert changes({"a": 1, "b": True}, {"a": 1.0, "b": 1}) != []
    assert changes(saved, saved) == []


def test_a_slim_copy_has_the_averaged_weights_and_says_where_they_come_from(
    tmp_path: Path,
) -> None:
    weights = {"w": np.zeros(4, np.float32), "codebook": np.ones(2, np.float32)}
    averaged = {"w": np.full(4, 0.5, np.float32)}
    whole = State(7, {"weights": weights, "ema": averaged, "optimizer": weights}, {"size": "tiny"})
    [saved] = save_all(tmp_path / "checkpoints", whole)
    copy = find(slim(saved, tmp_path / "out" / "voice").folder, pytest.fail)
    assert {name: a.tolist() for name, a in copy.arrays("weights")} == {
        "w": [0.5] * 4,
        "codebook": [1.0] * 2,
    }
    assert [*copy.groups] == ["weights"]
    assert copy.record.made_from is not None
    hashes = copy.record.made_from["files"]["optimizer.safetensors"]["sha256"]
    assert hashes == saved.record.files["optimizer.safetensors"].sha256
    with pytest.raises(CheckpointError) as raised:
        copy.restore({"weights": {}, "optimizer": {}})
    assert "slim copy" in raised.value.remedy


def test_a_slim_copy_takes_the_place_of_nothing(tmp_path: Path) -> None:
    [saved] = save_all(tmp_path / "checkpoints", state())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(SaveError, match="there already"):
        slim(saved, tmp_path / "mine")
    (tmp_path / "empty").mkdir()
    assert slim(saved, tmp_path / "empty").folder == tmp_path / "empty"
    flip(saved.folder / "weights.safetensors", -1)
    with pytest.raises(CheckpointError, match="its sum is another"):
        slim(saved, tmp_path / "other")
    assert not (tmp_path / "other").exists()
