"""Programs, moves and late results on logical CPU devices: the real code, no mocks."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from myxtts.batch import Batch
from myxtts.devices import DevicePlan, explicit_moves, silent_moves
from myxtts.pipeline import (
    LateResults,
    OutOfMemoryError,
    Program,
    WrongDeviceError,
    extract,
    feed_parallel,
    feed_split,
    move,
    run_ahead,
    transfer,
)
from myxtts.telemetry.record import FILE, Recorder, open_recorder, read_events

SILENT = Recorder()


def on(device: str, *values: float) -> tf.Tensor:
    with tf.device(device):
        return tf.constant(values, tf.float32)


def raw_batches(plan: DevicePlan, count: int) -> Iterator[Batch]:
    for number in range(count):
        yield Batch(number, ("a", "b"), on(plan.data, number, number + 1))


def doubled(values: tf.Tensor, _number: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
    return {"twice": values * 2, "rows": tf.shape(values)}


def test_a_batch_is_made_on_the_data_device_and_lands_on_the_model_device(plan: DevicePlan) -> None:
    program = Program(doubled, plan.data)
    stages = transfer(extract(raw_batches(plan, 3), program, SILENT), plan.models, SILENT)
    with run_ahead(stages) as ahead:
        batches = [batch for (batch,) in ahead]
    assert [batch.number for batch in batches] == [0, 1, 2]
    assert all(b.tensors["twice"].device.endswith("CPU:1") for b in batches)
    assert [b.tensors["twice"].numpy().tolist() for b in batches] == [[0, 2], [2, 4], [4, 6]]


def test_a_program_computes_on_its_own_device_whoever_calls_it(plan: DevicePlan) -> None:
    program = Program(doubled, plan.model)
    with tf.device(plan.data):
        results = program(on(plan.model, 1.0))
    assert results["twice"].backing_device.endswith("CPU:1")


def test_a_program_refuses_a_tensor_of_another_device(plan: DevicePlan) -> None:
    program = Program(doubled, plan.model)
    with pytest.raises(WrongDeviceError, match=r"runs on /CPU:1 .*float32\[1\].*transfer it first"):
        program(on(plan.data, 1.0))


def test_a_program_whose_body_names_another_device_is_refused(plan: DevicePlan) -> None:
    def strays(values: tf.Tensor) -> tf.Tensor:
        with tf.device(plan.data):
            return values + 1

    with pytest.raises(WrongDeviceError, match=r"asks for .*CPU:0"):
        Program(strays, plan.model)(on(plan.model, 1.0))


def test_a_device_named_inside_a_loop_of_a_program_is_found(plan: DevicePlan) -> None:
    def strays(values: tf.Tensor) -> tf.Tensor:
        def body(state: tf.Tensor) -> tuple[tf.Tensor]:
            with tf.device(plan.data):
                return (state + 1,)

        return tf.while_loop(lambda state: state[0] < 3, body, (values,))[0]

    with pytest.raises(WrongDeviceError, match=r"asks for .*CPU:0"):
        Program(strays, plan.model)(on(plan.model, 1.0))


def test_a_device_without_room_is_told_with_what_to_change(plan: DevicePlan) -> None:
    program = Program(lambda x: tf.fill([2**45], x[0]), plan.model, name="step")
    with pytest.raises(OutOfMemoryError, match="out of memory on /CPU:1 in program step") as told:
        program(on(plan.model, 1.0))
    assert "--batch-size" in told.value.remedy


def test_a_program_that_reads_a_foreign_variable_is_refused(plan: DevicePlan) -> None:
    with tf.device(plan.data):
        weight = tf.Variable(2.0)
    with pytest.raises(WrongDeviceError, match=r"reads a resource that lies on .*CPU:0"):
        Program(lambda x: x * weight, plan.model, name="strays")(on(plan.model, 1.0))


def test_a_program_that_reads_a_foreign_constant_is_refused(plan: DevicePlan) -> None:
    table = on(plan.data, *range(2000))
    with pytest.raises(WrongDeviceError, match=r"reads a float32 that lies on .*CPU:0"):
        Program(lambda x: x + table, plan.model, name="strays")(on(plan.model, 1.0))


def test_features_that_cannot_tell_when_they_are_made_are_refused(plan: DevicePlan) -> None:
    program = Program(lambda x, _number: tf.cast(x, tf.int32), plan.data, name="codes")
    with pytest.raises(ValueError, match="a batch of int32 alone"):
        next(extract(raw_batches(plan, 1), program, SILENT))


def test_between_cpu_devices_no_byte_is_copied_and_none_is_counted(
    plan: DevicePlan, tmp_path: Path
) -> None:
    recorder = open_recorder(tmp_path, {})
    next(transfer(raw_batches(plan, 1), plan.models, recorder))
    counts = [e for e in read_events(tmp_path / FILE) if e["kind"] == "count"]
    assert [(e["name"], e["value"]) for e in counts] == [("bytes_moved", 0)]


@pytest.mark.parametrize("jit", [False, True])
def test_one_shape_is_traced_once(plan: DevicePlan, jit: bool) -> None:
    program = Program(lambda x: x * 3, plan.model, jit=jit, name="triple")
    for value in range(5):
        program(on(plan.model, value))
    assert program.traces == 1
    program(on(plan.model, 1, 2))
    assert program.traces == 2


def test_an_eager_op_on_a_foreign_tensor_is_an_error_in_every_thread(plan: DevicePlan) -> None:
    foreign = on(plan.data, 1.0)

    def silent_copy() -> Iterator[tf.Tensor]:
        with tf.device(plan.model):
            yield tf.square(foreign)

    # The loop's thread first: TensorFlow drops a second thread's call to set the same policy.
    with explicit_moves(), pytest.raises(tf.errors.InvalidArgumentError, match="conflicting"):
        next(silent_copy())
    with explicit_moves(), pytest.raises(tf.errors.InvalidArgumentError, match="conflicting"):
        next(run_ahead(silent_copy()))


def test_leaving_explicit_moves_allows_copies_again(plan: DevicePlan) -> None:
    with explicit_moves():
        pass
    with tf.device(plan.model):
        assert float(tf.square(on(plan.data, 3.0))[0]) == 9.0


def test_transfer_leaves_no_device_scope_behind(plan: DevicePlan) -> None:
    batches = transfer(raw_batches(plan, 2), plan.models, SILENT)
    next(batches)
    assert tf.ones([1]).device.endswith("CPU:0")


def test_rows_are_dealt_in_order_to_every_model_device(plan: DevicePlan) -> None:
    devices = ("/CPU:1", "/CPU:2")
    (hands,) = transfer(raw_batches(plan, 1), devices, SILENT)
    assert [hand.clips for hand in hands] == [("a",), ("b",)]
    assert [float(hand.tensors[0]) for hand in hands] == [0.0, 1.0]
    assert [hand.tensors.device[-5:] for hand in hands] == ["CPU:1", "CPU:2"]


def test_a_batch_that_cannot_be_shared_equally_is_refused(plan: DevicePlan) -> None:
    with pytest.raises(ValueError, match="batch 0 has 2 clips, which cannot be shared"):
        next(transfer(raw_batches(plan, 1), ("/CPU:1", "/CPU:2", "/CPU:3"), SILENT))


def test_move_keeps_the_nest_and_its_values(plan: DevicePlan) -> None:
    nest: Any = {"a": on(plan.data, 1.0), "b": (on(plan.data, 2.0), on(plan.data, 3.0))}
    moved = move(nest, plan.model)
    assert tf.nest.map_structure(float, tf.nest.map_structure(tf.squeeze, moved)) == {
        "a": 1.0,
        "b": (2.0, 3.0),
    }


def test_results_come_late_in_order_and_none_is_lost(plan: DevicePlan) -> None:
    with LateResults(2, SILENT) as late:
        seen = [late.put(step, {"loss": on(plan.model, step)[0]}) for step in range(5)]
        rest = late.settle()
    assert [[r.step for r in each] for each in seen] == [[], [], [0], [1], [2]]
    assert [(r.step, r.values["loss"]) for r in rest] == [(3, 3.0), (4, 4.0)]


def test_the_next_batch_is_prepared_while_a_step_runs(plan: DevicePlan) -> None:
    """The heart: with batch 0 in the model's hands, batch 1 is made and not only waited for."""
    made = []

    def watched() -> Iterator[Batch]:
        for batch in raw_batches(plan, 10):
            made.append(batch.number)
            yield batch

    program = Program(doubled, plan.data)
    with feed_split([extract(watched(), program, SILENT)], plan.models, 3, SILENT) as ahead:
        (batch,) = next(ahead)
        assert ahead.fill(10)  # The "step" of batch 0 lasts until this event.
        # One waits on the model device, three on the data device.
        assert (batch.number, made, ahead.waiting) == (0, [0, 1, 2, 3, 4], 3)


def test_silent_moves_lift_explicit_moves_and_leave_them_as_they_were(plan: DevicePlan) -> None:
    foreign = on(plan.model, 1.0)
    with explicit_moves():
        with silent_moves(), tf.device(plan.data):
            assert (on(plan.data, 1.0) + foreign).numpy() == [2.0]
        with tf.device(plan.data), pytest.raises(tf.errors.InvalidArgumentError):
            tf.add(on(plan.data, 1.0), foreign)


def test_tensors_without_a_row_for_each_clip_are_not_shared(plan: DevicePlan) -> None:
    batch = Batch(7, ("a", "b"), on(plan.data, 1.0, 2.0, 3.0, 4.0))
    with pytest.raises(ValueError, match=r"batch 7 has 2 clips and tensors of shape \(4,\)"):
        next(transfer([batch], ("/CPU:1", "/CPU:2"), SILENT))


def test_reading_results_adds_no_wait_of_its_own_to_the_loops_lane(
    plan: DevicePlan, tmp_path: Path
) -> None:
    with LateResults(0, open_recorder(tmp_path, {})) as late:
        late.put(0, {"loss": on(plan.model, 1.0)[0]})
    names = [e["name"] for e in read_events(tmp_path / FILE) if e["kind"] == "span"]
    assert names == ["results"]


DATAS, MODELS = ("/CPU:0", "/CPU:3"), ("/CPU:1", "/CPU:2")


def numbered(device: str, numbers: range, fault: int = -1) -> Iterator[Batch]:
    """Batches made on a device, in the tensors of which their number stands."""
    for number in numbers:
        if number == fault:
            raise OSError(f"batch {number} cannot be read")
        yield Batch(number, ("a", "b"), on(device, number, number))


def test_batches_of_two_data_devices_stay_in_order_and_reach_both_model_devices() -> None:
    lanes = [numbered(device, range(7)[place::2]) for place, device in enumerate(DATAS)]
    with feed_split(lanes, MODELS, 2, SILENT) as feed:
        taken = list(feed)
    assert [hands[0].number for hands in taken] == list(range(7))
    assert all(hand.tensors.numpy().tolist() == [h[0].number] for h in taken for hand in h)
    assert {hand.tensors.device[-6:] for hands in taken for hand in hands} == {":CPU:1", ":CPU:2"}


def test_devices_that_prepare_for_themselves_are_handed_what_they_made() -> None:
    made = [list(numbered(device, range(3))) for device in MODELS]
    with feed_parallel(made, 2, SILENT) as feed:
        taken = list(feed)
    assert [hands[0].number for hands in taken] == [0, 1, 2]
    own = [batch.tensors for pair in zip(*made, strict=True) for batch in pair]
    got = [hand.tensors for hands in taken for hand in hands]
    assert all(a is b for a, b in zip(own, got, strict=True))


@pytest.mark.parametrize("lane", [0, 1])
def test_an_error_in_any_lane_reaches_the_loop_and_stops_the_others(lane: int) -> None:
    faults = [3 if place == lane else -1 for place in range(2)]
    lanes = [numbered(d, range(100), fault) for d, fault in zip(MODELS, faults, strict=True)]
    before = threading.active_count()
    with pytest.raises(OSError, match="batch 3"), feed_parallel(lanes, 2, SILENT) as feed:
        list(feed)
    assert threading.active_count() == before


@pytest.mark.parametrize("jit", [False, True])
def test_a_program_reads_its_variables_while_moves_are_explicit(
    jit: bool, plan: DevicePlan
) -> None:
    with tf.device(plan.model):
        weight = tf.Variable([2.0, 3.0])
    program = Program(lambda x: x * weight, plan.model, jit=jit)
    with explicit_moves():
        assert program(on(plan.model, 1.0, 2.0)).numpy().tolist() == [2.0, 6.0]
