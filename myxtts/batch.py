"""One batch of clips, as it passes through the pipeline."""

from typing import Any, NamedTuple

Tensors = Any
"""A nest of tensors, all on one device."""


class Batch(NamedTuple):
    """What the stages hand on; its tensors lie on the device of the last stage."""

    number: int
    """Counts from 0 over the whole run: the plan's position, and every span's."""
    clips: tuple[str, ...]
    """The clips' ids in row order: an error names them."""
    tensors: Tensors
