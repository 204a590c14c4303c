"""The books of a run: every second accounted for, every line kept."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from myxtts.errors import UserError
from myxtts.telemetry.record import FILE, Recorder, open_recorder, read_events
from myxtts.telemetry.steps import StepLedger, StepTimes
from myxtts.telemetry.verdict import Verdict, judge, verdict_line


class Clock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time

    def spend(self, recorder: Recorder, name: str, seconds: float, batch: int = 0) -> None:
        with recorder.span(name, batch=batch):
            self.time += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ledger_of(clock: Clock, device: str = "/CPU:1") -> tuple[Recorder, StepLedger]:
    recorder = Recorder(clock=clock)
    return recorder, StepLedger(recorder, device)


def in_thread(action: "threading.Thread") -> None:
    action.start()
    action.join()


def test_a_span_lands_in_the_file_with_its_device_thread_and_batch(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path, {"data": ["/CPU:0"]})
    with recorder.span("extract", "/CPU:0", 7):
        pass
    header, span = read_events(tmp_path / FILE)
    assert header["devices"] == {"data": ["/CPU:0"]}
    assert (span["name"], span["device"], span["batch"]) == ("extract", "/CPU:0", 7)
    assert span["thread"] == threading.current_thread().name


def test_lines_of_many_threads_never_mix(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path, {})

    def write(number: int) -> None:
        for count in range(200):
            recorder.count(f"thread-{number}", count)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = [e for e in read_events(tmp_path / FILE) if e["kind"] == "count"]
    for number in range(4):
        values = [e["value"] for e in events if e["name"] == f"thread-{number}"]
        assert values == list(range(200))


KILLED = """
import itertools, pathlib, sys
from myxtts.telemetry.record import open_recorder
recorder = open_recorder(pathlib.Path(sys.argv[1]), {})
for number in itertools.count():
    recorder.count("n", number)
    print(number, flush=True)
"""


def test_a_kill_loses_at_most_the_last_line(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        seen = [int(line) for line, _ in zip(process.stdout, range(500), strict=False)]
        process.send_signal(signal.SIGKILL)
    values = [e["value"] for e in read_events(tmp_path / FILE) if e["kind"] == "count"]
    assert values[: len(seen)] == seen


def test_a_torn_last_line_is_left_out_and_any_other_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text('{"kind":"run"}\n{"kind":"sp')
    assert [event["kind"] for event in read_events(path)] == ["run"]
    path.write_text('{"kind":"run"}\n{"kind":"sp\n{"kind":"span"}\n')
    with pytest.raises(UserError, match=r"telemetry.jsonl:2: not a telemetry line"):
        list(read_events(path))


def test_a_full_disk_is_a_clear_error() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    recorder = Recorder(os.open("/dev/full", os.O_WRONLY))
    with pytest.raises(UserError, match=r"telemetry cannot be written .*No space left"):
        recorder.count("n", 1)


def test_a_run_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        open_recorder(tmp_path / "file" / "run", {})


def test_a_step_after_a_pause_of_the_loop_is_known_by_its_parts(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock)
    paused = []
    for batch, before in enumerate(("books", "validate", "pictures", "copy", "wait")):
        clock.spend(recorder, before, 5.0)
        clock.spend(recorder, "step", 1.0, batch)
        paused.append(ledger.completed(batch + 1, batch, recorder.now()).paused)
    assert paused == [False, True, True, True, False]


def test_data_devices_are_busy_for_the_share_in_which_they_extracted(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock)
    # Before the first cycle: while all was compiled.
    in_thread(threading.Thread(target=clock.spend, args=(recorder, "extract", 50.0)))
    shares = []
    for batch, seconds in enumerate((1.0, 3.0, 0.0)):
        clock.spend(recorder, "wait", 1.0)
        in_thread(threading.Thread(target=clock.spend, args=(recorder, "extract", seconds)))
        clock.spend(recorder, "step", 4.0 - seconds, batch)
        shares.append(ledger.data_busy())
    assert shares == pytest.approx([0.2, 0.6, 0.0])


def test_the_parts_of_a_step_sum_to_the_steps_time(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock)
    clock.spend(recorder, "wait", 0.02)
    clock.spend(recorder, "step", 0.10, batch=1)
    clock.spend(recorder, "log", 0.03)
    clock.spend(recorder, "wait", 0.01)
    clock.spend(recorder, "step", 0.10, batch=2)
    times = [ledger.completed(1, 1, 0.0), ledger.completed(2, 2, 0.0)]
    assert [sum(t.parts.values()) for t in times] == pytest.approx([t.seconds for t in times])
    assert times[1].parts == pytest.approx({"log": 0.03, "wait": 0.01, "step": 0.10})


def test_time_outside_every_span_is_missing_from_the_sum_and_not_filled_up(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock)
    clock.spend(recorder, "step", 0.1, batch=1)
    clock.time += 0.5
    clock.spend(recorder, "step", 0.1, batch=2)
    ledger.completed(1, 1, 0.0)
    second = ledger.completed(2, 2, 0.0)
    assert (second.seconds, sum(second.parts.values())) == pytest.approx((0.6, 0.1))


def test_a_nested_span_counts_once(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock)
    with recorder.span("step", batch=1):
        clock.spend(recorder, "inner", 0.1)
    assert ledger.completed(1, 1, 0.0).parts == pytest.approx({"step": 0.1})


def test_a_wait_is_blamed_on_what_the_producer_was_doing(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock)

    def extract() -> None:
        clock.spend(recorder, "wait", 0.03)  # For clips.
        clock.spend(recorder, "extract", 0.05)

    def move() -> None:
        with recorder.span("wait"):
            in_thread(threading.Thread(target=extract, name="extractor"))
        clock.spend(recorder, "transfer", 0.01)

    with recorder.span("wait", batch=0):
        in_thread(threading.Thread(target=move, name="mover"))
        clock.time += 0.02
    clock.spend(recorder, "step", 0.1, batch=1)
    waits = {"read": 0.03, "extract": 0.05, "transfer": 0.01, "handover": 0.02}
    assert ledger.completed(1, 1, 0.0).waits == pytest.approx(waits)


def test_only_the_threads_the_loop_waits_for_explain_a_wait(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock)
    with recorder.span("wait", batch=0):
        read = threading.Thread(target=lambda: clock.spend(recorder, "read", 0.1), name="reader")
        in_thread(read)
    clock.spend(recorder, "step", 0.1, batch=1)
    assert ledger.completed(1, 1, 0.0).waits == pytest.approx({"handover": 0.1})


def test_the_device_has_a_lane_of_its_own(tmp_path: Path, clock: Clock) -> None:
    recorder = open_recorder(tmp_path, {})
    ledger = StepLedger(recorder, "/GPU:1")
    with recorder.span("step", batch=1):
        pass
    ledger.completed(1, 1, recorder.now() + 0.5)
    lanes = [e for e in read_events(tmp_path / FILE) if e["kind"] == "span"]
    assert [(e["device"], e["seconds"] > 0.4) for e in lanes] == [("", False), ("/GPU:1", True)]


def test_a_gpu_is_busy_from_dispatch_to_result_and_never_twice(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock, "/GPU:1")
    clock.spend(recorder, "step", 0.01, batch=1)  # Queued at 0.00, done at 0.10.
    clock.spend(recorder, "step", 0.01, batch=2)  # Queued at 0.01, done at 0.20.
    clock.time = 100.5
    clock.spend(recorder, "step", 0.01, batch=3)  # Queued at 0.50, done at 0.60.
    times = [ledger.completed(step, step, at) for step, at in ((1, 0.1), (2, 0.2), (3, 0.6))]
    assert [t.busy for t in times] == pytest.approx([0.1, 0.1, 0.1])
    assert [t.seconds for t in times] == pytest.approx([0.1, 0.1, 0.4])


def test_a_gpu_that_lags_behind_the_host_is_never_more_than_wholly_busy(clock: Clock) -> None:
    recorder, ledger = ledger_of(clock, "/GPU:1")
    for step in range(1, 13):  # The host queues three at once, and then keeps the device's pace.
        clock.spend(recorder, "step", 0.002, batch=step)
        clock.time += 0.0 if step < 3 else 0.098
    times = [ledger.completed(step, step, 0.1 * step) for step in range(1, 13)]
    assert all(t.busy <= t.seconds + 1e-9 for t in times)
    assert judge(times).busy == pytest.approx(1.0)


def step_times(busy: float, **waits: float) -> StepTimes:
    return StepTimes(1, 0.0, 1.0, 1.0, {}, waits, busy)


@pytest.mark.parametrize(
    ("times", "bound"),
    [
        (step_times(0.97, read=0.01), "compute-bound"),
        (step_times(0.5, read=0.4, extract=0.1), "read-bound"),
        (step_times(0.5, read=0.1, extract=0.4), "extract-bound"),
        (step_times(0.5, transfer=0.5), "transfer-bound"),
        (step_times(0.4, handover=0.01), "host-bound"),
    ],
)
def test_the_verdict_names_what_holds_the_model_back(times: StepTimes, bound: str) -> None:
    assert judge([times]).bound == bound


def test_a_host_that_waits_while_the_gpu_works_is_not_data_bound() -> None:
    verdict = judge([step_times(0.95, read=0.9)])
    assert verdict.bound == "compute-bound"
    assert verdict.waits["read"] == pytest.approx(0.05)


def test_the_log_line_carries_its_own_verdict() -> None:
    verdict = Verdict(10, 0.182, 0.97, 61.2, {"read": 0.01, "transfer": 0.0, "host": 0.02})
    line = verdict_line(1200, {"loss": 3.21}, verdict, "3/3")
    assert line == (
        "step 1200 · loss 3.21 · 182 ms · 61 s audio/s · model busy 97 % · "
        "waits: data 1 % transfer 0 % handover 0 % host 2 % · queue 3/3 · compute-bound"
    )


def test_events_hold_only_valid_json(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path, {})
    with pytest.raises(ValueError, match="not JSON compliant"):
        recorder.count("loss", float("nan"))
    lines: Iterator[str] = iter((tmp_path / FILE).read_text().splitlines())
    assert all(json.loads(line) for line in lines)
