"""What a user sees while it runs, on a terminal and off it."""

import io
import math
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from myxtts.telemetry.steps import StepTimes
from myxtts.telemetry.verdict import Verdict, verdict_line
from myxtts.view.live import LARGEST_SHARE, SHORTEST_PAUSE, View, watch
from myxtts.view.pace import POINTS, Course, Pace, span_of
from myxtts.view.progress import Work, counted
from myxtts.view.screen import LEVELS, Picture, Task

VERDICT = Verdict(10, 0.182, 0.97, 61.2, {"read": 0.01, "extract": 0.02, "host": 0.0})
MEMORY = {"": 3_400_000_000, "/GPU:1": 11_200_000_000}
WIDTHS = (20, 37, 60, 100, 160)
PERSIAN = "clip-17: «سلام، کتاب‌های من کجاست؟» " * 4


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return self.getvalue()


class Clock:
    """Time that passes only when told, and by `cost` at every look."""

    def __init__(self, cost: float = 0.0) -> None:
        self.time = 0.0
        self.cost = cost

    def __call__(self) -> float:
        self.time += self.cost
        return self.time


@pytest.fixture(autouse=True)
def terminal_of_100(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")


def step(number: int, seconds: float = 0.2) -> StepTimes:
    return StepTimes(number, 0, seconds, seconds, {}, {}, seconds, 10.0)


def picture() -> Picture:
    shown = Picture("gpt", 5000, Pace(5000))
    shown.pace.feed([step(n) for n in range(1, 1201)])
    for n in range(200):
        shown.loss.feed(10 / (1 + n))
    shown.values = {"loss": 3.21, "loss/mel": 3.1, "lr": 1e-4}
    shown.verdict, shown.ring, shown.memory = VERDICT, (2, 3), MEMORY
    shown.validation, shown.best = (1000, 3.4), (750, 3.38)
    shown.saved = "step 1,000 in runs/a/checkpoints/step-1000"
    shown.task = Task("validating", 8, 2, 12.0)
    return shown


def play(view: View, steps: int = 20) -> None:
    for number in range(1, steps + 1):
        view.steps([step(number)], {"loss": 10 / number})
        if number % 10 == 0:
            view.log(VERDICT, (3, 3), MEMORY)


# Off a terminal.


def played(out: io.StringIO, act: Callable[[View], None], steps: int = 20) -> list[str]:
    lines: list[str] = []
    with watch(steps, 1, "gpt", lines.append, out) as view:
        act(view)
    return lines


def test_off_a_terminal_every_log_is_the_verdict_line() -> None:
    lines = played(io.StringIO(), play)
    assert lines == [verdict_line(n, {"loss": 10 / n}, VERDICT, "3/3") for n in (10, 20)]


def test_a_dumb_terminal_gets_lines_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    assert len(played(out, play)) == 2
    assert out.text == ""


def test_a_terminal_that_has_no_bars_gets_lines() -> None:
    class Latin(Terminal):
        encoding = "iso-8859-1"

    out = Latin()
    assert (len(played(out, play)), out.text) == (2, "")


def test_validations_and_checkpoints_are_lines_too() -> None:
    def act(view: View) -> None:
        view.validation(750, 3.38, (750, 3.38))
        view.validation(1000, 3.401, (750, 3.38))
        view.saved(1000, Path("runs/a"))
        view.say(PERSIAN)

    assert played(io.StringIO(), act) == [
        "step 750 · validation loss 3.38 · the best so far",
        "step 1000 · validation loss 3.401 · best 3.38 at step 750",
        "step 1000 · saved in runs/a",
        PERSIAN,
    ]


def test_a_phase_says_that_it_begins_and_then_every_tenth() -> None:
    lines: list[str] = []
    clock = Clock()
    with (
        watch(9, 1, "gpt", lines.append, io.StringIO(), clock) as view,
        view.phase("compiling", 40) as advance,
    ):
        for _ in range(40):
            clock.time += 1
            advance()
    assert len(lines) == 11
    assert lines[:2] == ["compiling: 0 of 40", "compiling: 4 of 40 · 36 s left"]


def test_a_quick_phase_says_that_it_begins_and_that_it_ends() -> None:
    lines: list[str] = []
    with (
        watch(9, 1, "gpt", lines.append, io.StringIO(), Clock()) as view,
        view.phase("validating", 40) as advance,
    ):
        for _ in range(40):
            advance()
    assert lines == ["validating: 0 of 40", "validating: 40 of 40 · 0 s left"]


# On a terminal.


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_the_region_is_wider_than_the_terminal(width: int) -> None:
    lines = list(picture().lines(width))
    assert max(line.cell_len for line in lines) <= width


@pytest.mark.parametrize("width", WIDTHS[1:])
def test_a_narrow_region_tells_all_that_a_wide_one_does(width: int) -> None:
    told = " ".join(line.plain for line in picture().lines(width))
    for words in ("1,200/5,000", "24 %", "12 min 40 s left", "3.21", "lr 0.0001", "61 s audio/s"):
        assert words in told
    for words in ("97 %", "compute-bound", "data 3 %", "host 0 %", "■■□ 2/3", "11.2 GB", "host 3"):
        assert words in told
    for words in (
        "3.4 at step 1,000",
        "best 3.38 at step 750",
        "step 1,000 in",
        "2/8",
        "12 s left",
    ):
        assert words in told


def test_a_deep_ring_is_told_in_numbers() -> None:
    shown = picture()
    shown.ring = (700, 1000)
    assert "queue 700/1000" in " ".join(line.plain for line in shown.lines(200))


def test_validating_does_not_hide_the_validation_before_it() -> None:
    shown = picture()
    shown.task = Task("validation", 8, 2, 12.0)
    assert sum(line.plain.startswith("validation") for line in shown.lines(100)) == 2


def test_every_line_that_is_said_stands_above_the_region_once_and_whole() -> None:
    out = Terminal()
    with watch(500, 1, "gpt", print, out) as view:
        play(view, 50)
        view.say(PERSIAN)
        view.say("⚠ [bold]oscillation[/bold] :smile: → pipeline.depth")
        play(view, 50)
    assert out.text.count(PERSIAN) == 1
    assert out.text.count("⚠ [bold]oscillation[/bold] :smile: → pipeline.depth") == 1


def test_a_clips_name_cannot_move_the_cursor() -> None:
    out = Terminal()
    with watch(500, 1, "gpt", print, out) as view:
        view.say("clip\x1b[2J\x1b[H")
    assert "\x1b[2J" not in out.text
    assert "clip\\x1b[2J" in out.text


def test_stray_prints_stand_above_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    with watch(500, 1, "gpt", print) as view:
        play(view)
        print("a stray print")  # noqa: T201
    assert out.text.index("a stray print") < out.text.rindex("gpt ")
    assert sys.stdout is out


def test_the_region_is_drawn_at_most_four_times_a_second() -> None:
    out, clock = Terminal(), Clock()
    with watch(100_000, 1, "gpt", print, out, clock) as view:
        for number in range(1, 1001):
            clock.time += 0.01
            view.steps([step(number)], {"loss": 1.0})
    assert 20 <= out.text.count("gpt ") <= 10 / SHORTEST_PAUSE + 3


def test_a_slow_terminal_is_drawn_to_less_often() -> None:
    # Every drawing looks at the clock before and after, and so takes 20 ms here.
    out, clock = Terminal(), Clock(cost=0.02)
    with watch(1000, 1, "gpt", print, out, clock) as view:
        for number in range(1, 501):
            view.steps([step(number)], {"loss": 1.0})
    drawn = out.text.count("gpt ")
    assert 2 <= drawn <= clock.time * LARGEST_SHARE / 0.02 + 3


def test_no_color_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    with watch(500, 1, "gpt", print, out) as view:
        play(view)
    assert "\x1b[32m" not in out.text
    assert "━" in out.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_whatever_ends_it_the_cursor_shows_and_the_newest_step_stands(
    error: type[BaseException],
) -> None:
    def act(view: View) -> None:
        play(view, 23)
        raise error

    out = Terminal()
    with pytest.raises(error):
        played(out, act, 500)
    assert out.text.rindex("\x1b[?25h") > out.text.rfind("\x1b[?25l")
    assert out.text.rindex("23/500") > out.text.rindex("gpt ")
    assert out.text.endswith("\n\x1b[?25h")


KILLED = """
import os, signal
from myxtts.view.live import watch
with watch(5, 1, "gpt", print) as view:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_the_cursor_shown() -> None:
    ours, theirs = pty.openpty()
    ended = subprocess.run([sys.executable, "-c", KILLED], check=False, stdout=theirs)
    seen = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert ended.returncode == -signal.SIGKILL
    assert seen.rindex("\x1b[?25h") > seen.rfind("\x1b[?25l")


# The pace and the course.


def test_one_hiccup_does_not_move_the_end() -> None:
    pace = Pace(1000)
    pace.feed([step(n, 90.0 if n == 150 else 0.2) for n in range(1, 201)])
    assert pace.left == pytest.approx(800 * 0.2)


def test_pauses_that_come_again_are_foreseen() -> None:
    pace = Pace(1001)
    for number in range(1, 502):
        if number in (101, 201, 301, 401, 501):
            pace.pause(number - 1)
        pace.feed([step(number, 20.2 if number % 100 == 1 and number > 1 else 0.2)])
    assert pace.left == pytest.approx(500 * 0.2 + 5 * 20.0)


def test_a_resumed_run_counts_from_its_own_first_step() -> None:
    pace = Pace(1000, 501)
    assert (pace.step, math.isnan(pace.left)) == (500, True)
    pace.pause(500)  # What came before its first step is no pause of it.
    pace.feed([step(501, 30.0), step(502), step(503)])
    assert pace.left == pytest.approx(497 * 0.2)


def test_a_course_spans_the_whole_run_in_few_points() -> None:
    course = Course()
    for number in range(20_000):
        course.feed(20_000 - number)
    assert len(course.points) <= POINTS
    assert course.points == sorted(course.points, reverse=True)
    assert course.points[0] == 20_000
    assert course.points[-1] < 200


def test_the_smoothed_loss_of_equal_losses_is_that_loss_from_the_first_on() -> None:
    course = Course()
    for value in (3.0, math.nan, math.inf, 3.0):
        course.feed(value)
        assert course.smoothed == pytest.approx(3.0)


def test_a_falling_loss_draws_a_falling_line() -> None:
    course = Course()
    for number in range(500):
        course.feed(1000 if number == 0 else 5 - number / 100)
    drawn = course.drawn(20, LEVELS)
    assert (len(drawn), drawn[0], drawn[-1]) == (20, "█", "▁")
    assert list(drawn) == sorted(drawn, reverse=True)
    assert Course().drawn(20, LEVELS) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(9.4, "9 s"), (130, "2 min 10 s"), (3900, "1 h 05 min"), (273_600, "3 d 4 h")],
)
def test_a_time_is_told_as_people_read_it(seconds: float, words: str) -> None:
    assert span_of(seconds) == words


# Counts before a run.


@pytest.mark.parametrize(
    ("work", "total", "first"),
    [
        (Work("decoding", "decoded", "clips"), 50, "decoded 25 of 50 clips"),
        (Work("writing", "written", "MB"), 50_000_000, "written 25 of 50 MB"),
    ],
)
def test_a_count_that_goes_on_says_only_the_tenths_that_are_left(
    work: Work, total: int, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)  # Closed by the caller.
    lines: list[str] = []
    with counted(work, total, total * 4 // 10, lines.append) as advance:
        for _ in range(6):
            advance(total // 10)
    assert lines[0] == first
    assert len(lines) == 6
