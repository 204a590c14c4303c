"""One run: its folder, its books, its late results, and the verdict in its log."""

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from myxtts.config import Config, to_yaml
from myxtts.devices import DevicePlan, open_nvml
from myxtts.errors import UserError
from myxtts.pipeline import Feed, LateResults
from myxtts.telemetry.alarms import Alarm, AlarmLimits, AlarmWatch, StepRecord
from myxtts.telemetry.memory import free_memory, sample_memory, write_memory
from myxtts.telemetry.record import Recorder, Span, open_recorder
from myxtts.telemetry.steps import StepLedger, StepTimes
from myxtts.telemetry.verdict import Verdict, judge
from myxtts.view.live import View

CONFIG_FILE = "config.yaml"
KEPT_STEPS = 10_000
"""Steps whose times stay in memory; all of them are in the run's folder."""


class NonFiniteError(UserError):
    """A step's loss is no longer a number."""

    exit_code = 1


class Learned(NamedTuple):
    """What the books keep of a batch until its results are there."""

    number: int
    clips: tuple[str, ...]
    audio_seconds: float
    compiled: bool = False
    """Whether its step compiled a program: slow for a known reason."""


class Watchers(NamedTuple):
    """Who is told of the steps besides the books."""

    alarms: AlarmWatch
    nvml: ModuleType | None
    view: View


class Run:
    """What the loop talks to: spans around its parts, results as they come, a line now and then."""

    def __init__(
        self,
        folder: Path,
        recorder: Recorder,
        late: LateResults,
        plan: DevicePlan,
        watchers: "Watchers",
    ) -> None:
        self.view = watchers.view
        self.folder = folder
        self.recorder = recorder
        self.times: deque[StepTimes] = deque(maxlen=KEPT_STEPS)
        """The finished steps, oldest first."""
        self.values: dict[str, float] = {}
        """The newest finished step's scalars."""
        self.data_busy = 0.0
        """Share of the time between the last two logs in which the data devices worked."""
        self._late = late
        self.plan = plan
        self._watch = watchers.alarms
        self._nvml = watchers.nvml
        self._ledger = StepLedger(recorder, plan.model)
        self._queued: dict[int, Learned] = {}
        self._window: list[StepTimes] = []
        """The steps finished since the last log line."""
        self._memory: dict[int, Mapping[str, int]] = {}
        self._compiled: set[int] = set()
        """The steps since the last log line that compiled, and count for no alarm."""

    def span(self, name: str) -> Span:
        """Times a part of the loop."""
        return self.recorder.span(name)

    def step(self, batch: int) -> Span:
        """Times the queueing of a step; the ledger adds the device's own lane when it is done."""
        return self.recorder.span("step", batch=batch)

    def queued(self, number: int, batch: Learned, results: Mapping[str, Any]) -> None:
        """Takes a step's scalars on the device, and books the steps that are finished by now."""
        self._queued[number] = batch
        finished = self._late.put(number, results)
        with self.recorder.span("books"):
            for result in finished:
                self._book(result.step, result.values, result.at)

    def settle(self) -> None:
        """Waits for every queued step and books it."""
        for result in self._late.settle():
            self._book(result.step, result.values, result.at)

    def log(self, ahead: Feed, traces: Mapping[str, int]) -> Verdict | None:
        """Shows the newest finished step's figures, and every alarm that begins."""
        with self.recorder.span("log"):
            window, self._window = self._window, []
            if not window:
                return None
            verdict, memory = judge(window), sample_memory(self.plan)
            self.data_busy = min(1.0, self._ledger.data_busy() / len(self.plan.datas))
            self.view.log(verdict, (ahead.waiting, ahead.depth), memory.used)
            write_memory(self.recorder, memory, self.plan, self._nvml)
            self._look(window, traces)
            return verdict

    def verdict(self, warm_up: int = 0) -> Verdict | None:
        """The verdict on the whole run but its first steps, or None when nothing is left."""
        steady = [*self.times][warm_up:]
        return judge(steady) if steady else None

    def _look(self, window: list[StepTimes], traces: Mapping[str, int]) -> None:
        free = free_memory(self.plan)
        for times in window:
            newest = times is window[-1]
            record = StepRecord(
                step=times.step,
                seconds=times.seconds,
                waits=times.waits,
                memory=self._memory.pop(times.step),
                free=free if newest else {},
                traces=traces if newest else {},
                unusual=times.paused or times.step in self._compiled,
            )
            for alarm in self._watch.feed(record):
                self._raise(alarm)
        self._compiled.clear()

    def _raise(self, alarm: Alarm) -> None:
        self.recorder.write({"kind": "alarm", "at": round(self.recorder.now(), 7), **vars(alarm)})
        self.view.say(f"⚠ {alarm.name}: {alarm.message} → {alarm.flag}")

    def _book(self, step: int, values: dict[str, float], at: float) -> None:
        batch = self._queued.pop(step)
        # A run's first step compiles what moves the weights.
        if batch.compiled or not self.times:
            self._compiled.add(step)
        memory = self._memory[step] = sample_memory(self.plan).used
        times = self._ledger.completed(step, batch.number, at, batch.audio_seconds, memory)
        self.times.append(times)
        self._window.append(times)
        self.values = values
        self.view.steps([times], values)
        _check_finite(step, values, batch.clips)
        self.recorder.write({"kind": "results", "step": step, "values": values})


def _check_finite(step: int, values: Mapping[str, float], clips: tuple[str, ...]) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise NonFiniteError(
                f"step {step}: {name} is {value}; its clips: {', '.join(clips)}",
                "look at these clips, or lower the learning rate: training.lr",
            )


def beats(config: Config) -> dict[str, int]:
    """What happens every so many steps, by the setting that says how many."""
    return {
        "pipeline.depth": config.pipeline.depth,
        "training.log_every": config.training.log_every,
    }


@contextlib.contextmanager
def open_run(
    config: Config, plan: DevicePlan, view: View, runs: Path, shapes: int = 1
) -> Iterator[Run]:
    """A new folder under `runs`, and the books of one run whose batches come in `shapes`."""
    folder = new_folder(runs)
    (folder / CONFIG_FILE).write_text(to_yaml(config), encoding="utf-8")
    limits = AlarmLimits(
        variation=config.telemetry.step_variation_limit,
        log_every=config.training.log_every,
        known_periods=beats(config),
        false_alarms=config.telemetry.false_alarm_rate,
        traces_allowed=shapes,
        results_lag=config.telemetry.results_lag,
    )
    with contextlib.ExitStack() as stack:
        recorder = open_recorder(folder, {"data": list(plan.datas), "model": list(plan.models)})
        stack.callback(recorder.close)
        late = stack.enter_context(LateResults(config.telemetry.results_lag, recorder))
        nvml = stack.enter_context(open_nvml())
        yield Run(folder, recorder, late, plan, Watchers(AlarmWatch(limits), nvml, view))


def new_folder(runs: Path) -> Path:
    """A folder named by the time; two runs begun in one second get two folders."""
    name = time.strftime("%Y-%m-%d-%H%M%S")
    try:
        runs.mkdir(parents=True, exist_ok=True)
        for count in range(1000):
            folder = runs / (f"{name}-{count}" if count else name)
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise UserError(
            f"no run folder can be made in {runs} ({os.strerror(error.errno or 0)})",
            "name a folder that can be written: telemetry.runs=FOLDER",
        ) from error
    raise UserError(f"{runs} holds a thousand runs of this second already")
