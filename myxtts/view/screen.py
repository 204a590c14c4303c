"""The live region as text: rows of cells that flow to the terminal's width.

Legend: a cell is a piece of text that is not torn; a row is a label and its cells; widths in
columns of the terminal, seconds, bytes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions
from rich.text import Text

from myxtts.telemetry.verdict import COMPUTE_BOUND, Verdict, percent
from myxtts.view.pace import Course, Pace, span_of

DONE, REST = "━", "─"
LEVELS = "▁▂▃▄▅▆▇█"
FULL, FREE = "■", "□"
LABELS = 11
"""Columns for the labels on the left."""
NARROWEST_BAR, WIDEST_BAR = 8, 60
BUSY_BAR = 10
COURSE = 32
SEPARATOR = 3
"""Columns between two cells: a dot and its spaces."""
MOST_BLOCKS = 16
"""Slots of a ring that are drawn one by one."""


@dataclass
class Task:
    """Work that comes before, between or after the steps: compiling, validating."""

    name: str
    total: int
    done: int = 0
    left: float = math.nan


@dataclass
class Picture:
    """All that the region shows; the view fills it, and rich asks it to be drawn."""

    stage: str
    total: int
    pace: Pace
    loss: Course = field(default_factory=Course)
    values: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict | None = None
    ring: tuple[int, int] = (0, 0)
    memory: Mapping[str, int] = field(default_factory=dict)
    validation: tuple[int, float] | None = None
    best: tuple[int, float] | None = None
    saved: str = ""
    task: Task | None = None

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield from self.lines(options.max_width)

    def lines(self, width: int) -> Iterator[Text]:
        """The region, no line of it longer than `width`."""
        room = max(1, width - LABELS)
        rows = [
            (self.stage, self._progress(room)),
            ("loss", self._losses(room)),
            ("speed", self._speed()),
            ("waits", self._waits()),
            ("validation", self._validation()),
            ("saved", [Text(self.saved)] if self.saved else []),
            ("memory", [Text(f"{name or 'host'} {_size(b)}") for name, b in self.memory.items()]),
        ]
        if self.task:
            task = self.task
            told = [_count(task.done, task.total), *_left(task.left)]
            rows.append((task.name, _bar(task.done, task.total, told, room)))
        for label, cells in rows:
            yield from _flow(label, cells, width)

    def _progress(self, room: int) -> list[Text]:
        step = self.pace.step
        share = percent(step / max(self.total, 1))
        told = [_count(step, self.total), share, *_left(self.pace.left)]
        return _bar(step, self.total, told, room)

    def _losses(self, room: int) -> list[Text]:
        name = loss_of(self.values)
        if not name:
            return []
        newest = Text(f"{self.values[name]:.4g}", "bold")
        others = [Text(f"{k} {v:.4g}") for k, v in self.values.items() if k != name]
        width = min(COURSE, room - len(newest) - 2)
        if course := self.loss.drawn(width, LEVELS):
            newest.append(f"  {course}", "not bold cyan")
            others.insert(0, Text(f"smoothed {self.loss.smoothed:.4g}"))
        return [newest, *others]

    def _speed(self) -> list[Text]:
        usual = self.pace.usual
        step = [Text(f"{1000 * usual:.0f} ms a step")] if math.isfinite(usual) else []
        if not self.verdict:
            return step
        style = "green" if self.verdict.busy >= COMPUTE_BOUND else "yellow"
        busy = _gauge(self.verdict.busy, BUSY_BAR, style)
        return [
            *step,
            Text(f"{self.verdict.audio_rate:.0f} s audio/s"),
            Text("model busy ") + busy + Text(f" {percent(self.verdict.busy)}"),
            Text(self.verdict.bound, style),
        ]

    def _waits(self) -> list[Text]:
        if not self.verdict:
            return []
        waits = dict(self.verdict.waits)
        data = waits.pop("read", 0.0) + waits.pop("extract", 0.0)
        shares = {"data": data, "transfer": 0.0, "handover": 0.0} | waits
        return [*(Text(f"{cause} {percent(s)}") for cause, s in shares.items()), self._queue()]

    def _queue(self) -> Text:
        waiting, depth = self.ring
        blocks = Text()
        if depth <= MOST_BLOCKS:
            blocks.append(FULL * waiting, "green")
            blocks.append(FREE * (depth - waiting) + " ", "bright_black")
        return Text("queue ") + blocks + Text(f"{waiting}/{depth}")

    def _validation(self) -> list[Text]:
        if not self.validation or not self.best:
            return []
        (step, loss), (best_step, best) = self.validation, self.best
        newest = Text(f"{loss:.4g} at step {step:,}", "green" if step == best_step else "")
        least = "best so far" if step == best_step else f"best {best:.4g} at step {best_step:,}"
        return [newest, Text(least)]


def loss_of(values: Mapping[str, float]) -> str:
    """The name of the value that is watched: "loss", else the first that speaks of one."""
    named = (name for name in values if "loss" in name)
    return "loss" if "loss" in values else next(named, next(iter(values), ""))


def _count(done: int, total: int) -> str:
    return f"{done:,}/{total:,}"


def _left(seconds: float) -> list[str]:
    """The time to the end, where it is known and there is any."""
    return [f"{span_of(seconds)} left"] if seconds > 0 else []


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _bar(done: int, total: int, told: Sequence[str], room: int) -> list[Text]:
    """A bar as wide as what is told beside it leaves room for; none where that is little."""
    first, *others = (Text(each) for each in told)
    width = min(WIDEST_BAR, room - sum(len(each) + SEPARATOR for each in told))
    if width >= NARROWEST_BAR:
        first = _gauge(done / max(total, 1), width, "green") + Text("  ") + first
    return [first, *others]


def _gauge(share: float, width: int, style: str) -> Text:
    filled = round(min(max(share, 0.0), 1.0) * width)
    rest = Text(REST * (width - filled), "bright_black")
    return Text(DONE * filled, style) + rest


def _flow(label: str, cells: Sequence[Text], width: int) -> Iterator[Text]:
    """Packs a row's cells into lines; only the first one carries the label."""
    line = Text(no_wrap=True).append(f"{label[: LABELS - 1]:<{LABELS}}", "bright_black")
    used = 0
    for cell in cells:
        if used and LABELS + used + SEPARATOR + cell.cell_len > width:
            yield _cropped(line, width)
            line, used = Text(" " * LABELS, no_wrap=True), 0
        if used:
            line.append(" · ", "bright_black")
            used += SEPARATOR
        line.append_text(cell)
        used += cell.cell_len
    if used:
        yield _cropped(line, width)


def _cropped(line: Text, width: int) -> Text:
    if line.cell_len > width:
        line.truncate(max(0, width - 1))
        line.append("…")
    return line
