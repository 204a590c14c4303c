"""The learning rate of every step: a pure function, so that a resumed run goes on with it."""

import math
from typing import Literal, NamedTuple

Shape = Literal["cosine", "steps", "constant"]
HALVINGS = (0.45, 0.7, 0.85)
"""Shares of a run's steps after which the shape "steps" halves the rate."""


class Schedule(NamedTuple):
    """Up in a line, then down to a share of the highest rate."""

    highest: float
    steps: int
    """Of the whole run."""
    warm_up: int
    shape: Shape
    lowest_share: float
    """Share of the highest rate that a cosine ends at."""

    def rate(self, step: int) -> float:
        """Of the step with this number, counted from 1; past the end it stays where it was."""
        warm_up = min(self.warm_up, self.steps)
        if step <= warm_up:
            return self.highest * step / warm_up
        if self.shape == "constant":
            return self.highest
        done = min(1.0, (step - warm_up) / max(1, self.steps - warm_up))
        if self.shape == "steps":
            return float(self.highest / 2 ** sum(done >= share for share in HALVINGS))
        wave = (1 + math.cos(math.pi * done)) / 2
        return self.highest * (self.lowest_share + (1 - self.lowest_share) * wave)

    def described(self) -> str:
        """One line for the start of a run."""
        last = self.rate(self.steps)
        ways = {"cosine": "a cosine", "steps": "halvings", "constant": "no change"}
        warm_up = f"{min(self.warm_up, self.steps)} steps up to {self.highest:.3g}"
        return (
            f"learning rate: {warm_up}, then {ways[self.shape]} to {last:.3g} at step {self.steps}"
        )
