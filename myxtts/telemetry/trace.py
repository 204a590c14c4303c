"""Draws a run as a Chrome trace, which Perfetto and chrome://tracing open.

One process per device and one lane per thread; arrows follow a batch from stage to stage.
Legend: pid and tid name lanes, not system processes; times in nanoseconds until they are
written, in microseconds.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from myxtts.errors import UserError
from myxtts.telemetry.record import FILE, read_events, reading

Event = Mapping[str, Any]
TraceEvent = dict[str, Any]

STAGES = ("read", "extract", "transfer", "step")
STEPS_LANE = "steps"
NOT_READINGS = {"kind", "name", "device", "at"}
# Start and length of a span are rounded apart, so neighbours may overlap by less than this.
ROUNDING = 1_000


@dataclass
class Slice:
    """One box in a lane; `run` counts the runs that share a file, each with its own batches."""

    name: str
    start: int
    end: int
    args: dict[str, Any]
    run: int
    pid: int = 0
    tid: int = 0

    def event(self) -> TraceEvent:
        """Gives the complete event."""
        place = {"pid": self.pid, "tid": self.tid, "ts": _us(self.start)}
        length = {"dur": _us(self.end - self.start), "args": self.args}
        return {"ph": "X", "cat": "span", "name": self.name, **place, **length}


@dataclass
class _Drawing:
    """What has been read so far."""

    roles: dict[str, list[str]] = field(default_factory=lambda: {"": []})
    slices: dict[tuple[str, str], list[Slice]] = field(default_factory=lambda: defaultdict(list))
    # Marks and counters wait for their device's pid until all devices are known.
    points: list[tuple[str, TraceEvent]] = field(default_factory=list)
    first_start: float | None = None
    run: int = 0
    # A resumed run counts its seconds from its own start.
    shift: float = 0.0


def write_trace(run_folder: Path, out: Path) -> int:
    """Writes the run's trace to `out` and gives its number of events."""
    with reading(run_folder / FILE):
        trace = chrome_trace(read_events(run_folder / FILE))
        text = json.dumps(trace, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"the trace {out} cannot be written ({error.strerror})") from error
    return len(trace["traceEvents"])


def chrome_trace(events: Iterable[Event]) -> dict[str, Any]:
    """Turns telemetry events into a trace: lanes, boxes, arrows, counters and alarms."""
    drawing = _Drawing()
    readers = {
        "run": _read_run,
        "span": _read_span,
        "step": _read_step,
        "count": _read_count,
        "memory": _read_readings,
        "gpu": _read_readings,
        "alarm": _read_alarm,
    }
    for event in events:
        # Kinds of a later version are not ours to judge.
        if reader := readers.get(event.get("kind", "")):
            reader(drawing, event)
    pids = _pids(drawing.roles)
    names = _process_names(drawing.roles, pids)
    lanes = _place(drawing.slices, pids)
    slices = [each for boxes in drawing.slices.values() for each in boxes]
    points = [{**point, "pid": pids[device], "tid": 0} for device, point in drawing.points]
    timed = [each.event() for each in slices] + _arrows(slices) + points
    # Of boxes that begin together the outer comes first, and an arrow after the box it binds to.
    timed.sort(key=lambda event: (event["ts"], event["ph"] != "X", -event.get("dur", 0)))
    return {"traceEvents": names + lanes + timed, "displayTimeUnit": "ms"}


def _read_run(drawing: _Drawing, event: Event) -> None:
    started = float(event["started"])
    if drawing.first_start is None:
        drawing.first_start = started
    else:
        drawing.run += 1
        drawing.shift = max(started - drawing.first_start, 0.0)
    for role, devices in event["devices"].items():
        for device in devices:
            roles = drawing.roles.setdefault(device, [])
            if role not in roles:
                roles.append(role)


def _read_span(drawing: _Drawing, event: Event) -> None:
    device = event["device"]
    drawing.roles.setdefault(device, [])
    batch = event.get("batch")
    args = {} if batch is None else {"batch": batch}
    lane = (device, str(event["thread"]))
    drawing.slices[lane].append(_slice(drawing, event, str(event["name"]), args))


def _read_step(drawing: _Drawing, event: Event) -> None:
    args = {key: event[key] for key in ("step", "parts", "waits", "busy") if key in event}
    # The lane of the host: a GPU's own step stands in the device's lane.
    cycle = {**event, "seconds": event.get("host_seconds", event["seconds"])}
    box = _slice(drawing, cycle, f"step {event['step']}", args)
    drawing.slices["", STEPS_LANE].append(box)


def _slice(drawing: _Drawing, event: Event, name: str, args: dict[str, Any]) -> Slice:
    start = _seconds(event, "start") + drawing.shift
    end = start + _seconds(event, "seconds")
    return Slice(name, round(start * 1e9), round(end * 1e9), args, drawing.run)


def _read_count(drawing: _Drawing, event: Event) -> None:
    _add_counter(drawing, event, str(event["name"]), event["value"])


def _read_readings(drawing: _Drawing, event: Event) -> None:
    """Draws each reading as a counter of its own: viewers stack what shares one."""
    for key in sorted(event.keys() - NOT_READINGS):
        if isinstance(event[key], int | float):
            _add_counter(drawing, event, f"{event['kind']} {key}", event[key])


def _add_counter(drawing: _Drawing, event: Event, name: str, value: float) -> None:
    if not math.isfinite(value):
        raise UserError(f"a telemetry event has no number for {name}: {dict(event)}")
    args = {"value": value}
    _add_point(drawing, event, {"ph": "C", "cat": "count", "name": name, "args": args})


def _read_alarm(drawing: _Drawing, event: Event) -> None:
    args = {"message": event["message"], "flag": event["flag"]}
    mark = {"ph": "i", "s": "g", "cat": "alarm", "name": event["name"], "args": args}
    _add_point(drawing, event, mark)


def _add_point(drawing: _Drawing, event: Event, point: TraceEvent) -> None:
    device = event.get("device", "")
    drawing.roles.setdefault(device, [])
    at = round((_seconds(event, "at") + drawing.shift) * 1e9)
    drawing.points.append((device, {**point, "ts": _us(at)}))


def _seconds(event: Event, key: str) -> float:
    value = event.get(key)
    if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise UserError(f"a telemetry event has no time in {key!r}: {dict(event)}")
    return float(value)


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1000


def _pids(roles: Mapping[str, list[str]]) -> dict[str, int]:
    """Numbers the host, the data devices, the model devices and any others, in that order."""

    def rank(device: str) -> tuple[bool, bool, bool, str]:
        return device != "", "data" not in roles[device], "model" not in roles[device], device

    return {device: pid for pid, device in enumerate(sorted(roles, key=rank), start=1)}


def _process_names(roles: Mapping[str, list[str]], pids: Mapping[str, int]) -> list[TraceEvent]:
    names: list[TraceEvent] = []
    for device, pid in pids.items():
        told = f" ({', '.join(roles[device])})" if roles[device] else ""
        names.append(_label("process_name", pid, 0, name=f"{device}{told}" if device else "host"))
        names.append(_label("process_sort_index", pid, 0, sort_index=pid))
    return names


def _label(kind: str, pid: int, tid: int, **args: str | int) -> TraceEvent:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def _place(
    slices: Mapping[tuple[str, str], list[Slice]], pids: Mapping[str, int]
) -> list[TraceEvent]:
    """Gives every slice its lane, and returns the lanes' names."""
    names: list[TraceEvent] = []
    # A tid that equals some pid means that process's main thread to some readers, and one used
    # twice the same thread, so no id is used again.
    tid = len(pids)
    for device, thread in sorted(slices, key=lambda lane: (pids[lane[0]], lane[1])):
        pid = pids[device]
        for number, boxes in enumerate(_nested_lanes(slices[device, thread]), start=1):
            tid += 1
            name = thread if number == 1 else f"{thread} ({number})"
            names.append(_label("thread_name", pid, tid, name=name))
            names.append(_label("thread_sort_index", pid, tid, sort_index=tid))
            for box in boxes:
                box.pid, box.tid = pid, tid
    return names


def _nested_lanes(boxes: list[Slice]) -> list[list[Slice]]:
    """Spreads slices over as few lanes as this order allows, so that in each they only nest.

    Viewers draw two slices that overlap in part as if one contained the other.
    """
    lanes: list[list[Slice]] = []
    open_boxes: list[list[Slice]] = []
    for box in sorted(boxes, key=lambda each: (each.start, -each.end)):
        for lane, stack in zip(lanes, open_boxes, strict=True):
            if _fits(box, stack):
                lane.append(box)
                break
        else:
            lanes.append([box])
            open_boxes.append([box])
    return lanes


def _fits(box: Slice, stack: list[Slice]) -> bool:
    """Puts `box` on the stack of open slices if it nests, mending what rounding did."""
    slack = min(ROUNDING, (box.end - box.start) // 2)
    depth = len(stack)
    while depth and stack[depth - 1].end <= box.start + slack:
        depth -= 1
    if depth and box.end > stack[depth - 1].end + ROUNDING:
        return False
    closed = stack[depth:]
    del stack[depth:]
    earliest = closed[0].end if closed else stack[-1].start if stack else box.start
    box.start = max(box.start, earliest)
    box.end = max(box.end, box.start)
    if stack:
        box.end = min(box.end, stack[-1].end)
    stack.append(box)
    return True


def _arrows(slices: Iterable[Slice]) -> list[TraceEvent]:
    """Links the stages of each batch, each arrow with an id of its own."""
    batches: defaultdict[tuple[int, Any], list[Slice]] = defaultdict(list)
    for box in slices:
        if box.name in STAGES and "batch" in box.args:
            batches[box.run, box.args["batch"]].append(box)
    arrows: list[TraceEvent] = []
    for boxes in batches.values():
        boxes.sort(key=lambda box: (box.start, STAGES.index(box.name)))
        for source, target in pairwise(boxes):
            # A batch number that comes round again begins a new journey.
            if STAGES.index(target.name) > STAGES.index(source.name):
                arrows += _arrow(source, target, len(arrows) // 2 + 1)
    return arrows


def _arrow(source: Slice, target: Slice, number: int) -> list[TraceEvent]:
    # Within the source, or it binds to nothing, and never later than the target's start.
    leaves = max(source.start, min(source.end - 1, target.start))
    both = {"cat": "batch", "name": f"batch {source.args['batch']}", "id": number}
    tail = {"ph": "s", "pid": source.pid, "tid": source.tid, "ts": _us(leaves), **both}
    head = {"ph": "f", "bp": "e", "pid": target.pid, "tid": target.tid, "ts": _us(target.start)}
    return [tail, {**head, **both}]
