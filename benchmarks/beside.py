"""Our works and the reference's in one run: in turns, on the same cores, as ratios.

The reference is another Python with another framework. It is run by its own script, which prints
JSON; each round of a section runs ours, then the script, so that a neighbour's burst hits both.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures import OtherWork, Work, seconds_of, spread, told
from rich.progress import track


@dataclass(frozen=True)
class Arm:
    """One work of ours."""

    work: Work
    units: float = 1.0
    """What one call gives, in the section's unit."""
    theirs: tuple[str, ...] = ()
    """Where the script's JSON has what the same work takes; empty where it does not do it."""


@dataclass(frozen=True)
class Section:
    """Works that are measured in turns with one part of the reference's script."""

    name: str
    """As the script's JSON has it: what/size."""
    unit: str
    build: Callable[[], Mapping[str, Arm]]
    """Compiled and warm; what it holds of memory is free again when the section is done."""

    @property
    def arguments(self) -> list[str]:
        """What the script is asked for."""
        what, _, size = self.name.partition("/")
        return ["--what", what, *(["--sizes", size] if size else [])]


@dataclass(frozen=True)
class Reference:
    """The reference's Python and script."""

    python: Path
    script: Path
    options: list[str] = field(default_factory=list)

    def run(self, *arguments: str) -> dict[str, Any]:
        """What the script printed."""
        command = [str(self.python), str(self.script), *arguments, *self.options]
        ran = subprocess.run(  # noqa: S603  The user names both.
            command, capture_output=True, text=True, check=False, env=_bare_environment()
        )
        if ran.returncode:
            sys.exit(f"{' '.join(command)}\nended with {ran.returncode}:\n{ran.stderr[-2000:]}")
        return json.loads(ran.stdout[ran.stdout.index("{") :])  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Round:
    """What each took in one round."""

    ours: Mapping[str, float]
    theirs: Mapping[str, float]
    others: tuple[float, float]
    """Cores that other programs kept busy meanwhile: during ours, during theirs."""


def measure(
    sections: list[Section], reference: Reference | None, rounds: int, repeats: int
) -> dict[str, Any]:
    """Section after section, each in rounds: ours, theirs, ours, theirs."""
    figures = {}
    for section in track(sections, "sections", transient=True, disable=not sys.stderr.isatty()):
        arms = section.build()
        taken = [one_round(section, arms, reference, repeats) for _ in range(rounds)]
        figures[section.name] = {
            "unit": section.unit,
            "others": spread(max(each.others) for each in taken),
            "arms": {name: summed_up(name, arm, taken) for name, arm in arms.items()},
        }
        del arms
    return figures


def one_round(
    section: Section, arms: Mapping[str, Arm], reference: Reference | None, repeats: int
) -> Round:
    """Every arm of ours, then the script once."""
    watch = OtherWork()
    ours = {name: spread(seconds_of(arm.work, repeats))[0] for name, arm in arms.items()}
    beside_ours = watch.cores()
    if reference is None or not any(arm.theirs for arm in arms.values()):
        return Round(ours, {}, (beside_ours, 0.0))
    said = reference.run(*section.arguments)["results"][section.name]
    theirs = {name: _at(said, arm.theirs) for name, arm in arms.items() if arm.theirs}
    return Round(ours, theirs, (beside_ours, said["cpus_used_by_others"]))


def summed_up(name: str, arm: Arm, rounds: list[Round]) -> dict[str, Any]:
    """Rates of both, and how many times as fast ours is: a ratio is taken within its round."""
    row: dict[str, Any] = {
        "seconds": spread(each.ours[name] for each in rounds),
        "ours": spread(arm.units / each.ours[name] for each in rounds),
    }
    if name in rounds[0].theirs:
        row["theirs"] = spread(arm.units / each.theirs[name] for each in rounds)
        row["times_as_fast"] = spread(each.theirs[name] / each.ours[name] for each in rounds)
    return row


def show(figures: Mapping[str, Any]) -> None:
    """One line for each arm, grouped by section."""
    print(f"{'':30}{'a call, ms':>26}{'ours':>26}{'reference':>24}{'× as fast':>20}")
    for name, section in figures.items():
        print(f"{name}, {section['unit']} (other programs: {section['others'][0]:.1f} cores)")
        for arm, row in section["arms"].items():
            cells = [told([1000 * s for s in row["seconds"]], ",.1f").rjust(26)]
            cells += [told(row["ours"], ",.1f").rjust(26)]
            if "theirs" in row:
                cells += [told(row["theirs"], ",.1f").rjust(24)]
                cells += [told(row["times_as_fast"], ".2f").rjust(20)]
            print(f"  {arm:28}{''.join(cells)}")


def _at(said: Any, path: tuple[str, ...]) -> float:
    for name in path:
        said = said[name]
    return float(said["median_s"])


def _bare_environment() -> dict[str, str]:
    """Ours without what tells a Python where its packages lie."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
