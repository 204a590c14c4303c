"""In what numbers a network computes; its weights are always kept in 32 bits."""

from myxtts.config import TrainingConfig
from myxtts.devices import DevicePlan, compute_capability
from myxtts.layers import Precision

FIRST_WITH_BFLOAT16 = (8, 0)
"""Ampere: older cards compute bfloat16 slowly or not at all."""


def precision_of(training: TrainingConfig, plan: DevicePlan) -> Precision:
    """Half precision where it is asked for: bfloat16 where every model card has it."""
    if not training.mixed_precision:
        return "float32"
    known = [compute_capability(device) for device in plan.models]
    if all(each is None or each >= FIRST_WITH_BFLOAT16 for each in known):
        return "mixed_bfloat16"
    return "mixed_float16"
