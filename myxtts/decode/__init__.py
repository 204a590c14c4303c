"""One audio file of any format → mono 16-bit sound and what was measured on it."""

from myxtts.decode.chunk import Job, replaced
from myxtts.decode.measures import Measures, measure
from myxtts.decode.sound import Limits, Sound, UnreadableError, read_sound

__all__ = [
    "Job",
    "Limits",
    "Measures",
    "Sound",
    "UnreadableError",
    "measure",
    "read_sound",
    "replaced",
]
