"""Saving while the loop goes on: what is written is the state of the step, on any device."""

import threading
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoint import Checkpoints, SaveError, State, Stored, newest, open_checkpoints
from myxtts.checkpoint import saver as saver_module
from myxtts.checkpoint.saver import Saver
from myxtts.devices import DevicePlan, explicit_moves
from myxtts.telemetry.record import Recorder

SILENT = Recorder()
LATEST = 60.0
"""Seconds after which a thread that is waited for is given up."""


def state_of(variables: dict[str, Any], step: int) -> State:
    return State(step, {"weights": variables})


def values(stored: Stored | None) -> dict[str, list[float]]:
    assert stored is not None
    return {name: array.tolist() for name, array in stored.arrays("weights")}


class Gate(Checkpoints):
    """Checkpoints whose writing waits until it is let through."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 9, None, pytest.fail)
        self.opened = threading.Event()
        self.begun = threading.Event()

    def save(self, state: State) -> Stored:
        self.begun.set()
        assert self.opened.wait(LATEST)
        return super().save(state)


def test_variables_of_any_device_are_saved_and_restored(plan: DevicePlan, tmp_path: Path) -> None:
    with tf.device(plan.model):
        made = {
            "keras": keras.Variable([1.5, -0.0], dtype="bfloat16"),
            "tf": tf.Variable([[1, 2]], dtype=tf.int64),
            "seed": keras.Variable([7, 9], dtype="uint32"),
            "scalar": tf.Variable(3.0),
        }
    with open_checkpoints(tmp_path, 3) as checkpoints, explicit_moves():
        with Saver(checkpoints, SILENT, pytest.fail) as saver:
            saver.save(state_of(made, 1))
        for variable in made.values():
            with tf.device(plan.model):
                variable.assign(tf.zeros_like(variable))
        with tf.device(plan.model):
            found = checkpoints.newest()
            assert found is not None
            found.restore({"weights": made})
    assert (
        made["keras"].numpy().tobytes()
        == np.array([1.5, -0.0], made["keras"].numpy().dtype).tobytes()
    )
    assert made["tf"].numpy().tolist() == [[1, 2]]
    assert made["seed"].numpy().tolist() == [7, 9]
    assert made["scalar"].numpy() == 3.0
    assert made["tf"].device.endswith(plan.model.removeprefix("/"))


def test_a_later_step_does_not_change_what_is_being_written(tmp_path: Path) -> None:
    variable, array = tf.Variable([1.0]), np.ones(1, np.float32)
    gate = Gate(tmp_path)
    with Saver(gate, SILENT, pytest.fail) as saver:
        saver.save(state_of({"variable": variable, "array": array}, 1))
        assert gate.begun.wait(LATEST)
        variable.assign([2.0])
        array[:] = 2
        gate.opened.set()
    assert values(newest(tmp_path, pytest.fail)) == {"variable": [1.0], "array": [1.0]}


def test_the_loop_goes_on_while_the_thread_writes(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    with Saver(gate, SILENT, pytest.fail) as saver:
        saver.save(state_of({"w": np.ones(3)}, 1))
        # Here the loop would take its next step: nothing is written yet.
        assert newest(tmp_path, pytest.fail) is None
        gate.opened.set()
        saved = saver.settle()
        assert saved == newest(tmp_path, pytest.fail)
        assert saver.settle() is None


def test_leaving_in_any_way_saves_what_was_given(tmp_path: Path) -> None:
    def lose() -> None:
        with open_checkpoints(tmp_path, 3) as c, Saver(c, SILENT, pytest.fail) as saver:
            saver.save(state_of({"w": np.ones(3)}, 8))
            raise KeyError("the step")

    with pytest.raises(KeyError, match="the step"):
        lose()
    found = newest(tmp_path, pytest.fail)
    assert found is not None
    assert found.record.step == 8
    assert [t.name for t in threading.enumerate() if t.name == "saver"] == []


def test_an_error_of_the_writing_comes_with_the_next_call(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"

    def lose() -> None:
        with open_checkpoints(folder, 3) as c, Saver(c, SILENT, pytest.fail) as saver:
            (folder / ".lock").unlink()
            folder.rmdir()
            saver.save(state_of({"w": np.ones(3)}, 1))
            saver.save(state_of({"w": np.ones(3)}, 2))

    with pytest.raises(SaveError, match="step-00000001 cannot be saved"):
        lose()


def test_without_room_for_a_copy_the_loop_waits_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saver_module, "HOST_SPARE", 1 << 60)
    told: list[str] = []
    with open_checkpoints(tmp_path, 3) as c, Saver(c, SILENT, told.append) as saver:
        for step in (1, 2):
            saver.save(state_of({"w": np.ones(3)}, step))
            found = newest(tmp_path, pytest.fail)
            assert found is not None
            assert found.record.step == step
    assert len(told) == 1
    assert "steps wait while checkpoints are written" in told[0]
