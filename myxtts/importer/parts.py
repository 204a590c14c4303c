"""One part of the model, from the reference's names and layouts to ours and back.

What does not fit is told by name: missing, unexpected, of the wrong shape or kind.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from myxtts.config.problems import one_line
from myxtts.errors import UserError
from myxtts.importer.shapes import Row
from myxtts.importer.slots import Shape, Slots, slot_of
from myxtts.importer.source import Weights

MOST_TOLD = 20
WEIGHT_KINDS = ("float32", "float16", "bfloat16", "float64")


class MisfitError(UserError):
    """A file's tensors are not those of the model that it announces."""


@dataclass(frozen=True)
class Wanted:
    """What a file must hold, and what it may hold beside."""

    shapes: Mapping[str, Shape]
    may: frozenset[str] = frozenset()
    """Names that are welcome, whatever lies there."""


def to_ours(rows: Iterable[Row], weights: Weights) -> Slots:
    """The reference's tensors under our names, in our layouts."""
    return {row.ours: slot_of(weights, row.theirs).then(row.layout.ours, row.shape) for row in rows}


def to_theirs(rows: Iterable[Row], weights: Weights) -> Slots:
    """Our tensors under the reference's names, in its layouts."""
    return {
        row.theirs: slot_of(weights, row.ours).then(row.layout.theirs, row.shape_of_theirs)
        for row in rows
    }


def check_fit(weights: Weights, wanted: Wanted, remedy: str) -> None:
    """Raises with every tensor that is missing, unexpected, or of the wrong shape or kind."""
    faults = list(_faults(weights, wanted))
    if faults:
        more = len(faults) - MOST_TOLD
        told = "; ".join(faults[:MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
        raise MisfitError(f"{weights.file} does not fit: {told}", remedy)


def _faults(weights: Weights, wanted: Wanted) -> Iterator[str]:
    found = weights.tensors
    yield from (f"missing {name}" for name in sorted(wanted.shapes.keys() - found.keys()))
    beside = found.keys() - wanted.shapes.keys() - wanted.may
    yield from (f"unexpected {one_line(name)}" for name in sorted(beside))
    for name, shape in wanted.shapes.items():
        if name in found and found[name].shape != shape:
            yield f"{one_line(name)} is {list(found[name].shape)}, it should be {list(shape)}"
        elif name in found and found[name].kind not in WEIGHT_KINDS:
            yield f"{one_line(name)} is {found[name].kind}, weights are {', '.join(WEIGHT_KINDS)}"
