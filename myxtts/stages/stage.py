"""What a stage gives to the loop: features, students, habits; and what it is given to work with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from myxtts.config import TrainingConfig
from myxtts.features import Extract
from myxtts.layers import Precision
from myxtts.learner import Pictures, Student
from myxtts.optimizer import Habits

SHARE, LOSS = "share_in_", "loss_in_"
"""Before a language's name: its share of the clips that judge, and its loss times that."""


@dataclass(frozen=True)
class Materials:
    """What is there before a stage begins."""

    mel_stats_M: NDArray[np.float32]
    """Each mel band's spread, which mels are divided by."""
    mel_mean_M: NDArray[np.float32] | None = None
    """Each band's mean after that, where the data was measured: a new codec starts from it."""
    weights: Mapping[str, Path] = field(default_factory=dict)
    """Files of the parts that are finished and stay as they are: codec, gpt, speaker."""
    start: Path | None = None
    """File that the stage's own part starts from; left out, from random numbers."""
    languages: Mapping[str, int] = field(default_factory=dict)
    """Languages whose losses are told apart where clips judge, each with its tag's id."""


class Stage(Protocol):
    """One of dvae, gpt and vocoder."""

    name: str
    part: str
    """Of the model's folder: what the stage makes."""

    @property
    def habits(self) -> Habits:
        """How its optimizer works."""

    @property
    def steps(self) -> int | None:
        """How long it learns, where its own settings say."""

    @property
    def rate(self) -> float:
        """Its highest learning rate, where no other is named."""

    def features(self, device: str, *, judging: bool = False) -> Extract:
        """The body of a data device's program, with the frozen networks that it needs there."""

    def student(self, device: str) -> Student:
        """The networks that learn, on a model device."""


Develop = Callable[[Pictures], Pictures]


@runtime_checkable
class Developing(Protocol):
    """A stage whose student shows codes."""

    def mels(self, device: str) -> Develop:
        """The body of a data device's program that makes mels of them."""


@runtime_checkable
class Encoding(Protocol):
    """A stage that learns from the codes of a frozen codec, which may be kept."""

    @property
    def codes_maker(self) -> str:
        """A sum of everything that the codes depend on besides the clip."""

    def codes(self, device: str) -> Extract:
        """The body of a program that makes the codes alone."""

    def beside_codes(self, device: str, *, judging: bool = False) -> Extract:
        """The body of a program that is given the codes, and makes the rest of the features."""

    def let_go(self) -> None:
        """Holds the codec no longer; who needs it again loads it again."""


def habits_of(training: TrainingConfig, betas: tuple[float, float], precision: Precision) -> Habits:
    """What all stages have alike."""
    return Habits(
        betas=betas,
        decay=training.weight_decay,
        longest=training.clip_norm,
        average=training.ema,
        scaled=precision == "mixed_float16",
        frozen=training.freeze,
    )


def picked(features: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Only what the model device needs: the rest is neither computed nor moved."""
    return {name: features[name] for name in names}
