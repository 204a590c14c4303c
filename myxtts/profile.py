"""Reads a run's telemetry: what every stage takes, which device is busy, what to change."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import nan
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from myxtts.config import Config, load_config
from myxtts.errors import UserError
from myxtts.run import CONFIG_FILE, beats
from myxtts.telemetry import growth, periods
from myxtts.telemetry.alarms import (
    Alarm,
    memory_growth,
    oscillation,
    step_time_variation,
    variation,
)
from myxtts.telemetry.record import FILE, read_events, reading
from myxtts.telemetry.steps import StepTimes
from myxtts.telemetry.verdict import Verdict, judge, percent

WARM_UP = 2
"""Steps at the start that compile and fill, and so tell nothing of the rest."""
STAGES = ("read", "extract", "transfer", "blocked", "wait", "step", "results", "books", "log")

FIELDS = tuple(field.name for field in fields(StepTimes))

TESTS: Mapping[str, int] = {
    "step-time-variation": periods.FEWEST_STEPS,
    "oscillation": periods.FEWEST_STEPS,
    "memory-growth": growth.FEWEST_STEPS,
}
"""The steps that each test needs before it can say anything."""

REMEDIES: Mapping[str, str] = {
    "read": "reading is slow: more clips kept ready (--buffer-size 100), a local SSD",
    "extract": "the data device is the slower one: let two share it (--data-gpu 0,1), "
    "or compute features once and keep them",
    "transfer": "moving batches is slow: smaller batches, or GPUs that reach each other directly "
    "(nvidia-smi topo -m)",
    "handover": "batches come unevenly: give the ring more room (pipeline.depth)",
    "host": "the loop itself is slow: larger batches (--batch-size), fewer logs "
    "(training.log_every)",
}


@dataclass(frozen=True)
class Stage:
    """One kind of span, over the measured steps."""

    name: str
    place: str
    """A device, or the host's thread."""
    count: int
    median_seconds: float
    slow_seconds: float
    """95 of 100 spans are shorter."""
    share: float
    """Of the whole time."""


@dataclass(frozen=True)
class Profile:
    """What a run's folder tells, its first steps left out."""

    folder: Path
    data_devices: tuple[str, ...]
    model_devices: tuple[str, ...]
    stages: tuple[Stage, ...]
    verdict: Verdict
    variation: float
    data_busy: float
    """Share of the time in which the data device ran its program."""
    megabytes_moved: float
    """Per batch."""
    nvml: Mapping[str, tuple[float, float]]
    """By device, the medians of NVML's own utilisation in percent and of power in watts."""
    peaks: Mapping[str, int]
    """Greatest bytes in use, by device; the host's are resident."""
    alarms: tuple[Alarm, ...]


def read_profile(folder: Path) -> Profile:
    """Everything the telemetry of a run says, or a UserError where it says too little."""
    with reading(folder / FILE):
        return _profile(folder, list(read_events(folder / FILE)))


def _profile(folder: Path, events: list[dict[str, Any]]) -> Profile:
    header = next((event for event in events if event["kind"] == "run"), None)
    times = [_step_times(event) for event in events if event["kind"] == "step"][WARM_UP:]
    if header is None or not times:
        raise UserError(
            f"{folder} has no steps to look at after the first {WARM_UP}",
            "run more steps: --num-steps 100",
        )
    start, end = times[0].start, times[-1].start + times[-1].seconds
    spans = [e for e in events if e["kind"] == "span" and start <= e["start"] < end]
    seconds = np.array([step.seconds for step in _steady(times)])
    extracting = sum(span["seconds"] for span in spans if span["name"] == "extract")
    return Profile(
        folder=folder,
        data_devices=tuple(header["devices"]["data"]),
        model_devices=tuple(header["devices"]["model"]),
        stages=tuple(_stages(spans, end - start)),
        verdict=judge(times),
        variation=variation(seconds),
        data_busy=min(1.0, extracting / (end - start)),
        megabytes_moved=_moved(events),
        nvml=_nvml(events),
        peaks=_peaks(events),
        alarms=tuple(_alarms(folder, events, times)),
    )


def profile_lines(profile: Profile) -> Iterable[str]:
    """The profile as a table and a verdict."""
    yield f"{'stage':10}{'where':22}{'count':>7}{'median ms':>11}{'95 % ms':>10}{'share':>8}"
    for stage in profile.stages:
        yield (
            f"{stage.name:10}{stage.place:22}{stage.count:7}"
            f"{stage.median_seconds * 1000:11.2f}{stage.slow_seconds * 1000:10.2f}"
            f"{percent(stage.share):>8}"
        )
    yield from verdict_lines(profile)


def diagnosis_lines(profile: Profile) -> Iterable[str]:
    """What is wrong, each with the setting to change; what is not; and what could not be judged."""
    yield from verdict_lines(profile)
    for alarm in profile.alarms:
        yield f"⚠ {alarm.name}: {alarm.message}"
        yield f"  change: {alarm.flag}"
    alarmed = {alarm.name for alarm in profile.alarms}
    for name, needed in TESTS.items():
        if name in alarmed:
            continue
        if profile.verdict.steps < needed:
            yield f"– {name}: not judged, {profile.verdict.steps} of {needed} steps"
        else:
            yield f"✅ {name}: none in {profile.verdict.steps} steps"


def verdict_lines(profile: Profile) -> Iterable[str]:
    """Busy shares, variation, memory, and where the bottleneck is."""
    verdict = profile.verdict
    yield (
        f"data {', '.join(profile.data_devices)} busy {percent(profile.data_busy)} · "
        f"model {', '.join(profile.model_devices)} busy {percent(verdict.busy)} · "
        f"{verdict.step_seconds * 1000:.0f} ms a step ± {percent(profile.variation)} · "
        f"{verdict.audio_rate:.0f} s audio/s · "
        f"{profile.megabytes_moved:.1f} MB moved a batch"
    )
    for device, (utilisation, watts) in profile.nvml.items():
        yield f"NVML: {device} {utilisation:.0f} % utilisation, {watts:.0f} W"
    peaks = (f"{device or 'host'} {peak / 1e6:.0f} MB" for device, peak in profile.peaks.items())
    yield "greatest memory: " + " · ".join(peaks)
    waits = " · ".join(
        f"{cause} {percent(share)}" for cause, share in verdict.waits.items() if share > 0.005
    )
    yield f"bottleneck: {verdict.bound}" + (f" (model waits: {waits})" if waits else "")
    remedy = REMEDIES.get(verdict.bound.removesuffix("-bound"))
    if remedy:
        yield f"  {remedy}"


def _stages(spans: list[dict[str, Any]], whole: float) -> Iterable[Stage]:
    lanes: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for span in spans:
        lanes[span["name"], span["device"] or f"host, {span['thread']}"].append(span["seconds"])
    for name in STAGES:
        for (lane, place), seconds in lanes.items():
            if lane == name:
                slow = quantiles(seconds, n=20)[-1] if len(seconds) > 1 else seconds[0]
                yield Stage(name, place, len(seconds), median(seconds), slow, sum(seconds) / whole)


def _steady(times: list[StepTimes]) -> list[StepTimes]:
    """Without the steps before which the loop did something else."""
    return [step for step in times if not step.paused] or times


def _step_times(event: dict[str, Any]) -> StepTimes:
    return StepTimes(**{name: event[name] for name in FIELDS})


def _moved(events: list[dict[str, Any]]) -> float:
    moved = [e["value"] for e in events if e["kind"] == "count" and e["name"] == "bytes_moved"]
    return median(moved) / 1e6 if moved else 0.0


def _nvml(events: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    cards = [event for event in events if event["kind"] == "gpu"]
    return {
        device: (
            _middle(c["utilisation_percent"] for c in cards if c["device"] == device),
            _middle(c["power_watts"] for c in cards if c["device"] == device),
        )
        for device in dict.fromkeys(card["device"] for card in cards)
    }


def _middle(figures: Iterable[float | None]) -> float:
    """The median of what the card reported; nan for what it never does."""
    return median([figure for figure in figures if figure is not None] or [nan])


def _peaks(events: list[dict[str, Any]]) -> dict[str, int]:
    peaks: dict[str, int] = {}
    for event in events:
        if event["kind"] == "memory":
            peaks[event["device"]] = max(peaks.get(event["device"], 0), event["peak"])
    return peaks


def _alarms(folder: Path, events: list[dict[str, Any]], times: list[StepTimes]) -> Iterable[Alarm]:
    """What the run itself raised, and what a look at the whole of it shows besides."""
    raised = [Alarm(e["name"], e["message"], e["flag"]) for e in events if e["kind"] == "alarm"]
    yield from raised
    names = {alarm.name for alarm in raised}
    yield from (alarm for alarm in _looks(folder, events, times) if alarm.name not in names)


def _looks(folder: Path, events: list[dict[str, Any]], times: list[StepTimes]) -> Iterable[Alarm]:
    config = _config_of(folder)
    limits = config.telemetry
    times = _steady(times)
    seconds = [step.seconds for step in times]
    causes = sorted({cause for step in times for cause in step.waits})
    waits = {cause: [step.waits.get(cause, 0.0) for step in times] for cause in causes}
    used = [event["memory"] for event in events if event["kind"] == "step"]
    looks = [
        step_time_variation(seconds, waits, limits.step_variation_limit),
        oscillation(seconds, beats(config), limits.false_alarm_rate),
        *(
            memory_growth([each[device] for each in used], device, limits.false_alarm_rate)
            for device in used[-1]
        ),
    ]
    return [alarm for alarm in looks if alarm]


def _config_of(folder: Path) -> Config:
    """The settings that the run itself had."""
    file = folder / CONFIG_FILE
    return load_config(file if file.is_file() else None)
