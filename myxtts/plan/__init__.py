"""Which clips make which batch, in which order: a pure function of lengths, seed and position."""

from myxtts.plan.batches import (
    ALONE,
    NO_CLIP,
    Plan,
    PlannedBatch,
    Position,
    Table,
    Worker,
    make_plan,
)
from myxtts.plan.ladder import CODE, Ladder, solve_ladder, whole_codes
from myxtts.plan.once import Once, mark
from myxtts.plan.rows import FRAME, rows_per_batch
from myxtts.plan.split import drawn, held_out, is_validation

__all__ = [
    "ALONE",
    "CODE",
    "FRAME",
    "NO_CLIP",
    "Ladder",
    "Once",
    "Plan",
    "PlannedBatch",
    "Position",
    "Table",
    "Worker",
    "drawn",
    "held_out",
    "is_validation",
    "make_plan",
    "mark",
    "rows_per_batch",
    "solve_ladder",
    "whole_codes",
]
