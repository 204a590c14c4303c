"""How fast it goes, how long it still takes, and the loss's course, in a few hundred numbers.

Legend: seconds; a step's seconds run from the end of the step before to its own.
"""

import math
from collections import deque
from collections.abc import Iterable
from statistics import median

from myxtts.telemetry.steps import StepTimes

RECENT_STEPS = 101
"""Steps whose median is the pace: a new pace shows within half of them, a hiccup never."""
POINTS = 256
"""Points of a course at most; beyond that every second one is dropped."""
SMOOTHING = 0.9
"""How much of the smoothed value stays when one more comes."""
HIGHEST_SHARE = 0.9
"""Share of a course's points that its drawing spans; the first losses would dwarf the rest."""


class Pace:
    """Foretells the end: the median step, and what validating and saving add to it.

    A median alone would forget the pauses, a mean would carry the first compilations along.
    """

    def __init__(self, total_steps: int, first_step: int = 1) -> None:
        self._total = total_steps
        self._first = first_step
        self._recent: deque[float] = deque(maxlen=RECENT_STEPS)
        self._paused_before: set[int] = set()
        self._pauses = 0.0
        self._last_pause = 0
        self.step = first_step - 1
        """The newest finished step."""

    def pause(self, step: int) -> None:
        """Says that something that will come again, as validating does, follows this step."""
        self._paused_before.add(step + 1)

    def feed(self, times: Iterable[StepTimes]) -> None:
        """Takes finished steps, oldest first."""
        for each in times:
            self.step = each.step
            # Compared before it is taken in, or a slow step would count as usual by itself.
            if each.step in self._paused_before:
                self._add_pause(each)
            self._recent.append(each.seconds)

    @property
    def usual(self) -> float:
        """The median step of late; not a number before the first one is finished."""
        return median(self._recent) if self._recent else math.nan

    @property
    def left(self) -> float:
        """Seconds to the end; not a number before the first step is finished."""
        return (self._total - self.step) * (self.usual + self._pause_share)

    @property
    def _pause_share(self) -> float:
        """Seconds of pauses for each step, counted up to the last one so that it does not saw."""
        return self._pauses / (self._last_pause - self._first) if self._pauses else 0.0

    def _add_pause(self, times: StepTimes) -> None:
        self._paused_before.discard(times.step)
        if self._recent:
            self._pauses += max(0.0, times.seconds - self.usual)
            self._last_pause = times.step


class Course:
    """A value's smoothed course since the beginning, thinned as it grows."""

    def __init__(self) -> None:
        self.points: list[float] = []
        self._stride = 1
        self._seen = 0
        self._sum = 0.0
        self._weight = 0.0

    @property
    def smoothed(self) -> float:
        """The running mean, without the pull towards 0 that a young one has."""
        return self._sum / self._weight if self._weight else math.nan

    def feed(self, value: float) -> None:
        """Takes the next value; one that is no number leaves no trace."""
        if not math.isfinite(value):
            return
        self._sum = SMOOTHING * self._sum + (1 - SMOOTHING) * value
        self._weight = SMOOTHING * self._weight + (1 - SMOOTHING)
        if self._seen % self._stride == 0:
            self.points.append(self.smoothed)
        self._seen += 1
        if len(self.points) > POINTS:
            self.points = self.points[::2]
            self._stride *= 2

    def drawn(self, width: int, levels: str) -> str:
        """Draws it in at most `width` signs, of which `levels` names the low ones first."""
        count = min(width, len(self.points))
        if count < 2:
            return ""
        places = [round(i * (len(self.points) - 1) / (count - 1)) for i in range(count)]
        shown = [self.points[place] for place in places]
        low, high = min(shown), sorted(shown)[int(HIGHEST_SHARE * (count - 1))]
        scale = (len(levels) - 1) / (high - low) if high > low else 0.0
        tops = (min(round((value - low) * scale), len(levels) - 1) for value in shown)
        return "".join(levels[top] for top in tops)


def span_of(seconds: float) -> str:
    """A time as people read it: "3 d 4 h", "1 h 05 min", "2 min 10 s", "9 s"."""
    if not math.isfinite(seconds):
        return "?"
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
