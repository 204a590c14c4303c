"""Which of a student's weights learn, by the names in the settings."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from myxtts.config.problems import nearest
from myxtts.errors import UserError
from myxtts.learner.student import Variables
from myxtts.optimizer import Habits


class Parted(NamedTuple):
    """Every player's weights in two parts."""

    learning: Mapping[str, Variables]
    frozen: Mapping[str, Variables]


def parted(players: Mapping[str, Variables], habits: Habits) -> Parted:
    """What gradients move and what stays; a pattern that names no weight is the user's mistake."""
    names = {name for weights in players.values() for name in weights}
    for pattern in habits.frozen:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UserError(
                f"training.freeze: no weight is called {pattern}", _near(pattern, names)
            )
    learning = {
        player: {name: weight for name, weight in weights.items() if _learns(name, habits)}
        for player, weights in players.items()
    }
    if not any(learning.values()):
        raise UserError(
            f"training.freeze: {', '.join(habits.frozen)} leave no weight to learn", "freeze fewer"
        )
    frozen = {
        player: {name: weight for name, weight in weights.items() if name not in learning[player]}
        for player, weights in players.items()
    }
    return Parted(learning, frozen)


def _learns(name: str, habits: Habits) -> bool:
    meant, kept = (
        any(fnmatchcase(name, pattern) for pattern in patterns)
        for patterns in (habits.learning, habits.frozen)
    )
    return meant and not kept


def _near(pattern: str, names: set[str]) -> str:
    """Weights that are called alike, else what there is at all."""
    tops = sorted({name.partition("/")[0] for name in names})
    found = nearest(pattern.rstrip("*/"), sorted({*names, *tops}))
    if found is None:
        return f"the names begin with {', '.join(tops)}"
    return f"did you mean {f'{found}/*' if found in tops else found}?"
