import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.errors import UserError
from myxtts.telemetry.trace import chrome_trace, write_trace

RUN = {
    "kind": "run",
    "version": 1,
    "started": 1000.0,
    "devices": {"data": ["/GPU:1"], "model": ["/GPU:0"]},
}


def span(
    name: str,
    device: str,
    start: float,
    seconds: float,
    batch: int | None = None,
    thread: str = "t",
) -> dict[str, Any]:
    place = {"kind": "span", "name": name, "device": device, "thread": thread}
    return {**place, "batch": batch, "start": start, "seconds": seconds}


def events_of(*events: dict[str, Any], ph: str) -> list[dict[str, Any]]:
    return [event for event in chrome_trace([RUN, *events])["traceEvents"] if event["ph"] == ph]


def labels(*events: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [event for event in events_of(*events, ph="M") if event["name"] == kind]


JOURNEY = [
    span("read", "", 0.0, 0.1, 7, "reader"),
    span("extract", "/GPU:1", 0.2, 0.1, 7, "producer"),
    span("transfer", "/GPU:0", 0.4, 0.1, 7, "producer"),
    span("step", "/GPU:0", 0.6, 0.1, 7, "main"),
]


def test_host_comes_first_and_the_data_device_above_the_model_device() -> None:
    names = labels(kind="process_name")
    order = {
        event["pid"]: event["args"]["sort_index"] for event in labels(kind="process_sort_index")
    }
    by_order = sorted(names, key=lambda event: order[event["pid"]])
    told = [event["args"]["name"] for event in by_order]
    assert told == ["host", "/GPU:1 (data)", "/GPU:0 (model)"]


def test_one_device_with_both_roles_is_one_process() -> None:
    run = {**RUN, "devices": {"data": ["/GPU:0"], "model": ["/GPU:0"]}}
    names = [event["args"].get("name") for event in chrome_trace([run])["traceEvents"]]
    assert "/GPU:0 (data, model)" in names


def test_each_thread_of_each_device_has_a_lane_of_its_own() -> None:
    lanes = labels(*JOURNEY, kind="thread_name")
    assert len({event["tid"] for event in lanes}) == 4
    assert sorted(event["args"]["name"] for event in lanes) == sorted(
        ["reader", "producer", "producer", "main"]
    )


def test_a_span_becomes_a_box_in_microseconds_with_its_batch() -> None:
    (box,) = events_of(span("extract", "/GPU:1", 1.234567, 0.0123, 7), ph="X")
    assert (box["name"], box["ts"], box["dur"]) == ("extract", 1234567.0, 12300.0)
    assert box["args"] == {"batch": 7}


def test_arrows_follow_a_batch_through_all_stages() -> None:
    tails, heads = events_of(*JOURNEY, ph="s"), events_of(*JOURNEY, ph="f")
    assert [event["id"] for event in tails] == [event["id"] for event in heads] == [1, 2, 3]
    assert [event["ts"] for event in heads] == [200_000, 400_000, 600_000]
    boxes = events_of(*JOURNEY, ph="X")
    for tail, box in zip(tails, boxes, strict=False):
        assert (tail["pid"], tail["tid"]) == (box["pid"], box["tid"])
        assert box["ts"] <= tail["ts"] < box["ts"] + box["dur"]


def test_two_batches_share_no_arrow() -> None:
    other = [{**event, "batch": 8, "start": event["start"] + 0.05} for event in JOURNEY]
    names = [event["name"] for event in events_of(*JOURNEY, *other, ph="f")]
    assert sorted(names) == ["batch 7"] * 3 + ["batch 8"] * 3


def test_a_batch_number_that_returns_begins_a_new_journey() -> None:
    later = [{**event, "start": event["start"] + 10} for event in JOURNEY]
    heads = events_of(*JOURNEY, *later, ph="f")
    assert len(heads) == 6
    assert 10_000_000 not in [event["ts"] for event in heads]


def test_spans_that_overlap_in_part_go_to_an_overflow_lane() -> None:
    crossing = [span("read", "", 0.0, 1.0), span("wait", "", 0.5, 1.0), span("log", "", 0.6, 0.1)]
    read, wait, log = events_of(*crossing, ph="X")
    assert read["tid"] == log["tid"] != wait["tid"]
    names = [event["args"]["name"] for event in labels(*crossing, kind="thread_name")]
    assert names == ["t", "t (2)"]


def test_rounding_of_neighbours_opens_no_lane() -> None:
    touching = [
        span("outer", "", 0.0, 1.0),
        span("a", "", 0.1, 0.2000001),
        span("b", "", 0.3, 0.7000002),
    ]
    boxes = events_of(*touching, ph="X")
    assert len({box["tid"] for box in boxes}) == 1
    outer, a, b = boxes
    assert a["ts"] + a["dur"] <= b["ts"]
    assert b["ts"] + b["dur"] <= outer["ts"] + outer["dur"]


times = st.integers(0, 40).map(lambda tick: tick / 1e7) | st.integers(0, 40).map(float)
many_spans = st.lists(st.tuples(times, times), max_size=25)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(many_spans)
def test_boxes_of_one_lane_always_nest(stretches: list[tuple[float, float]]) -> None:
    boxes = events_of(*(span("x", "", start, length) for start, length in stretches), ph="X")
    assert len(boxes) == len(stretches)
    lanes = defaultdict(list)
    for box in boxes:
        assert box["dur"] >= 0
        begin = round(box["ts"] * 1000)
        lanes[box["tid"]].append((begin, begin + round(box["dur"] * 1000)))
    for lane in lanes.values():
        open_ends: list[int] = []
        for begin, end in lane:
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


def test_counters_are_drawn_for_queue_memory_and_card() -> None:
    counters = events_of(
        {"kind": "count", "name": "queue_depth", "device": "", "at": 1.2, "value": 3},
        {"kind": "memory", "device": "/GPU:0", "at": 1.3, "bytes": 123, "peak": 456},
        {"kind": "gpu", "device": "/GPU:0", "at": 1.4, "power_watts": 250.5},
        ph="C",
    )
    assert [(event["name"], event["args"]["value"]) for event in counters] == [
        ("queue_depth", 3),
        ("memory bytes", 123),
        ("memory peak", 456),
        ("gpu power_watts", 250.5),
    ]
    assert counters[0]["pid"] != counters[1]["pid"] == counters[3]["pid"]


def test_an_alarm_is_a_global_mark_with_its_message() -> None:
    alarm = {"kind": "alarm", "at": 1.3, "name": "oscillation", "message": "beats", "flag": "depth"}
    (mark,) = events_of(alarm, ph="i")
    assert (mark["name"], mark["s"], mark["ts"]) == ("oscillation", "g", 1_300_000)
    assert mark["args"] == {"message": "beats", "flag": "depth"}


def test_a_step_is_drawn_with_its_parts_in_the_steps_lane() -> None:
    step = {"kind": "step", "step": 12, "start": 1.2, "seconds": 0.1, "parts": {"wait": 0.01}}
    (box,) = events_of({**step, "busy": {"/GPU:0": 0.08}}, ph="X")
    assert box["name"] == "step 12"
    assert box["args"] == {"step": 12, "parts": {"wait": 0.01}, "busy": {"/GPU:0": 0.08}}
    (lane,) = labels(step, kind="thread_name")
    assert lane["args"]["name"] == "steps"


def test_a_resumed_run_is_drawn_after_the_first() -> None:
    resumed = {**RUN, "started": 1060.0}
    boxes = events_of(JOURNEY[3], resumed, span("extract", "/GPU:1", 0.5, 0.1, 7), ph="X")
    assert [box["ts"] for box in boxes] == [600_000, 60_500_000]
    assert events_of(JOURNEY[0], resumed, JOURNEY[1], ph="s") == []


def test_events_are_sorted_by_time_with_outer_boxes_first() -> None:
    inner, outer = span("read", "", 1.0, 0.1), span("wait", "", 1.0, 0.5)
    timed = [e for e in chrome_trace([*JOURNEY, inner, outer])["traceEvents"] if e["ph"] != "M"]
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(timed))
    assert [event["name"] for event in timed if event["ts"] == 1_000_000] == ["wait", "read"]


def test_lanes_are_integers() -> None:
    for event in chrome_trace([RUN, *JOURNEY])["traceEvents"]:
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int


def test_kinds_of_a_later_version_are_left_out() -> None:
    later = {"kind": "dream", "at": 1.0}
    assert chrome_trace([RUN, later]) == chrome_trace([RUN])


@pytest.mark.parametrize("seconds", [-0.1, float("nan"), float("inf"), None, "long"])
def test_a_time_that_is_no_time_is_refused(seconds: Any) -> None:
    with pytest.raises(UserError, match="no time in 'seconds'"):
        chrome_trace([RUN, span("read", "", 1.0, seconds)])


def test_a_counter_that_is_no_number_is_refused() -> None:
    event = {"kind": "count", "name": "queue_depth", "device": "", "at": 1.0, "value": float("nan")}
    with pytest.raises(UserError, match="no number for queue_depth"):
        chrome_trace([RUN, event])


def test_written_trace_is_strict_json_of_the_events_it_counted(tmp_path: Any) -> None:
    lines = [json.dumps(event) for event in (RUN, *JOURNEY)]
    (tmp_path / "telemetry.jsonl").write_text("\n".join(lines) + "\n")
    count = write_trace(tmp_path, tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(), parse_constant=pytest.fail)
    assert trace == chrome_trace([RUN, *JOURNEY])
    assert len(trace["traceEvents"]) == count > len(JOURNEY)


def test_a_trace_that_cannot_be_written_says_so(tmp_path: Any) -> None:
    (tmp_path / "telemetry.jsonl").write_text(json.dumps(RUN) + "\n")
    with pytest.raises(UserError, match="cannot be written"):
        write_trace(tmp_path, tmp_path / "nowhere" / "trace.json")
