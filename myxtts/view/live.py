"""What the loop tells its user while it runs: a live region on a terminal, else plain lines.

    with watch(total_steps, first_step, stage="gpt", say=say) as view:
        with view.phase("compiling", programs) as advance:   # advance() after each
        for ...:
            view.steps(times, values)          # the steps that are finished by now; every step
            view.log(verdict, ring, memory)    # every log_every steps
            view.validation(step, loss, best)  # best: step and loss of the lowest so far
            view.saved(step, folder)
            view.say(line)                     # an alarm, a warning: stands above the region

All of it is plain data of the host. The region is drawn by these calls alone, in their own
thread, at most four times a second and in less than a hundredth of the time. Its cursor is never
hidden and no mode of the terminal is changed, so that even a killed run leaves it as it was.
Legend: seconds, bytes; `ring` is finished batches and how many may wait.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from myxtts.telemetry.steps import StepTimes
from myxtts.telemetry.verdict import Verdict, verdict_line
from myxtts.view.pace import Pace, span_of
from myxtts.view.progress import Tenths
from myxtts.view.screen import Picture, Task, loss_of

Say = Callable[[str], None]
Clock = Callable[[], float]
Advance = Callable[[], None]

SHORTEST_PAUSE = 0.25
"""Seconds between two drawings, at least."""
QUICK = 1.0
"""Seconds within which no second line tells how far something is."""
LARGEST_SHARE = 0.005
"""Share of the time that drawing may take; the rest of the hundredth is for the bookkeeping."""


class View(Protocol):
    """What the loop talks to."""

    def steps(self, times: Sequence[StepTimes], values: Mapping[str, float]) -> None:
        """Takes the steps that were finished since the last call, and the newest one's values."""

    def log(self, verdict: Verdict, ring: tuple[int, int], memory: Mapping[str, int]) -> None:
        """Takes the verdict on the steps since the last log, and the bytes held by device."""

    def validation(self, step: int, loss: float, best: tuple[int, float]) -> None:
        """Takes the loss on clips that only judge, and the step and loss that were best so far."""

    def saved(self, step: int, folder: Path) -> None:
        """Takes a checkpoint's step and place."""

    def say(self, line: str) -> None:
        """Tells a line that stays."""

    def phase(self, name: str, total: int) -> AbstractContextManager[Advance]:
        """Shows how far work besides the steps is; what it gives is called after each part."""


@contextlib.contextmanager
def watch(
    total_steps: int,
    first_step: int,
    stage: str,
    say: Say,
    out: TextIO | None = None,
    clock: Clock = time.perf_counter,
) -> Iterator[View]:
    """A view of the steps up to `total_steps`; `say` tells its lines where there is no terminal."""
    out = out or sys.stdout
    if not is_screen(out):
        yield Lines(say, clock)
        return
    console = Console(file=out, highlight=False)
    picture = Picture(stage, total_steps, Pace(total_steps, first_step))
    # What else Python prints meanwhile goes above the region, unless it goes to a file.
    both = sys.stderr is not None and sys.stderr.isatty()
    live = Live(
        picture,
        console=console,
        auto_refresh=False,
        redirect_stderr=both,
        vertical_overflow="crop",
    )
    with live:
        console.show_cursor(True)
        yield Screen(picture, live, clock)  # On leaving, rich draws once more.


def is_screen(out: TextIO | None) -> bool:
    """Whether bars can be drawn on this stream, again and again; a closed one is None."""
    if out is None or not out.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return out.encoding.lower().startswith("utf")


class Lines:
    """The same as lines, one at a time: for files, pipes and terminals that only type."""

    def __init__(self, say: Say, clock: Clock) -> None:
        self.say = say
        self._clock = clock
        self._step = 0
        self._values: Mapping[str, float] = {}

    def steps(self, times: Sequence[StepTimes], values: Mapping[str, float]) -> None:
        """Keeps them for the next log line."""
        self._step = times[-1].step if times else self._step
        self._values = values

    def log(self, verdict: Verdict, ring: tuple[int, int], memory: Mapping[str, int]) -> None:
        """Says the verdict line; the memory stands in the run's telemetry."""
        del memory
        waiting, depth = ring
        self.say(verdict_line(self._step, self._values, verdict, f"{waiting}/{depth}"))

    def validation(self, step: int, loss: float, best: tuple[int, float]) -> None:
        """Says it."""
        self.say(validation_line(step, loss, best))

    def saved(self, step: int, folder: Path) -> None:
        """Says it."""
        self.say(saved_line(step, folder))

    @contextlib.contextmanager
    def phase(self, name: str, total: int) -> Iterator[Advance]:
        """Says that it begins, since it may be long, and then every tenth that is not quick."""
        begun, tenths = self._clock(), Tenths(total)
        told = begun
        self.say(f"{name}: 0 of {total}")

        def advance() -> None:
            nonlocal told
            now = self._clock()
            if tenths.add(1) and (now - told >= QUICK or tenths.done == total):
                told, left = now, seconds_left(now - begun, tenths.done, total)
                self.say(f"{name}: {tenths.done} of {total} · {span_of(left)} left")

        yield advance


class Screen:
    """A region at the terminal's lower end that is drawn over and over."""

    def __init__(self, picture: Picture, live: Live, clock: Clock) -> None:
        self._picture = picture
        self._live = live
        self._clock = clock
        self._next = 0.0
        """When the next drawing may be."""

    def steps(self, times: Sequence[StepTimes], values: Mapping[str, float]) -> None:
        """Moves the bar and the loss's course on."""
        self._picture.pace.feed(times)
        self._picture.values = values
        if times and (name := loss_of(values)):
            self._picture.loss.feed(values[name])
        self._draw_in_turn()

    def log(self, verdict: Verdict, ring: tuple[int, int], memory: Mapping[str, int]) -> None:
        """Shows what holds the speed back."""
        self._picture.verdict, self._picture.ring = verdict, ring
        self._picture.memory = memory
        self._draw_in_turn()

    def validation(self, step: int, loss: float, best: tuple[int, float]) -> None:
        """Shows it in the region, and leaves the line above it."""
        self._picture.validation, self._picture.best = (step, loss), best
        self._picture.pace.pause(step)
        self.say(validation_line(step, loss, best))

    def saved(self, step: int, folder: Path) -> None:
        """Shows where the newest checkpoint lies."""
        self._picture.saved = f"step {step:,} in {folder}"
        self._picture.pace.pause(step)
        self._draw_in_turn()

    def say(self, line: str) -> None:
        """Prints it above the region, unbroken: the terminal wraps it, and it is copied whole."""
        # A name on disk may hold any sign; these would move the cursor.
        harmless = line.replace("\x1b", "\\x1b")
        self._live.console.print(Text(harmless), soft_wrap=True)

    @contextlib.contextmanager
    def phase(self, name: str, total: int) -> Iterator[Advance]:
        """Shows a second bar."""
        begun = self._clock()
        task = self._picture.task = Task(name, total)

        def advance() -> None:
            task.done += 1
            task.left = seconds_left(self._clock() - begun, task.done, total)
            self._draw_in_turn()

        self.draw()  # At once: the first part may be long.
        try:
            yield advance
        finally:
            self._picture.task = None
            self.draw()

    def draw(self) -> None:
        """Draws the region now."""
        begun = self._clock()
        self._live.refresh()
        took = self._clock() - begun
        self._next = begun + took + max(SHORTEST_PAUSE, took / LARGEST_SHARE)

    def _draw_in_turn(self) -> None:
        if self._clock() >= self._next:
            self.draw()


def validation_line(step: int, loss: float, best: tuple[int, float]) -> str:
    """The line of a validation; `best` is the lowest loss so far and its step."""
    best_step, least = best
    judged = "the best so far" if step == best_step else f"best {least:.4g} at step {best_step}"
    return f"step {step} · validation loss {loss:.4g} · {judged}"


def saved_line(step: int, folder: Path) -> str:
    """The line of a checkpoint."""
    return f"step {step} · saved in {folder}"


def seconds_left(elapsed: float, done: int, total: int) -> float:
    """What the rest takes, if its parts take as long as those that are done."""
    return elapsed / done * (total - done)
