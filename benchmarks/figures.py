"""What the benchmarks share: how a figure is taken, summed up and handed out.

Legend: a figure is a list of its median, its least and its greatest value.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

SHORTEST = 0.5
"""Seconds that one timing lasts at least: a short work is done several times in it."""

Work = Callable[[], object]


def spread(values: Iterable[float]) -> list[float]:
    """Median, least, greatest."""
    every = list(values)
    return [median(every), min(every), max(every)]


def told(figure: list[float], form: str = ",.0f") -> str:
    """As the tables have it: the median, and the other two in brackets."""
    middle, least, greatest = (format(value, form) for value in figure)
    return f"{middle} ({least}–{greatest})"


def parser(document: str | None) -> argparse.ArgumentParser:
    """With the switch that every benchmark has; the document's first line says what it measures."""
    made = argparse.ArgumentParser(description=(document or "").partition("\n")[0])
    made.add_argument("--json", action="store_true", help="the figures alone, as JSON")
    return made


def hand_out(
    figures: Any, options: argparse.Namespace, show: Callable[[Any], None], **more: object
) -> None:
    """Prints the figures as JSON, with what they were taken on and how, or as `show` does."""
    if not options.json:
        show(figures)
        return
    taken = {name: value for name, value in vars(options).items() if name != "json"}
    machine = {
        "python": platform.python_version(),
        "tensorflow": import_module("tensorflow").__version__,
        "cores": os.cpu_count(),
        **taken,
        **more,
    }
    print(json.dumps({"machine": machine, "figures": figures}, indent=2, default=str))


def use_cores(count: int | None) -> None:
    """Holds this process and its children to so many cores, before TensorFlow makes its threads."""
    if count is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def seconds_of(work: Work, repeats: int) -> list[float]:
    """What one call takes, so many times; each is the mean of enough calls to be measured."""
    start = time.perf_counter()
    work()
    calls = max(1, int(SHORTEST / (time.perf_counter() - start)))
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        taken.append((time.perf_counter() - start) / calls)
    return taken


class OtherWork:
    """How many cores the machine's other programs kept busy since this was made."""

    def __init__(self) -> None:
        self._start, self._busy, self._own = self._now()

    def cores(self) -> float:
        """0 on a quiet machine; a figure that was taken beside others is theirs as well."""
        now, busy, own = self._now()
        return max(0.0, ((busy - self._busy) - (own - self._own)) / (now - self._start))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Seconds: on the clock, of all cores' work, of our own and our children's."""
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n")[0].split()[1:]
        user, nice, system, _idle, _wait, interrupt, soft, stolen = map(int, fields[:8])
        ticks = user + nice + system + interrupt + soft + stolen
        own = os.times()
        return time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK"), sum(own[:4])


def held_mb(kind: str) -> float:
    """What the kernel counts for this process: RssAnon its own memory, VmHWM its peak."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split(f"{kind}:")[1].split()[0]) / 1024


def missed(targets: Mapping[str, float], reached: Mapping[str, float]) -> list[str]:
    """A line for each target that has a figure, and whether it is reached."""
    return [
        f"{'reached' if reached[name] >= target else 'MISSED'}: {target:g} × {name}: "
        f"{reached[name]:.2f}"
        for name, target in targets.items()
        if name in reached
    ]
