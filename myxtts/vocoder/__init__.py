"""The HiFi-GAN that turns the GPT's latents into sound."""

from myxtts.vocoder.generator import Vocoder
from myxtts.vocoder.joining import OVERLAP, Joint, join
from myxtts.vocoder.lengths import (
    frames_for_latents,
    latents_at_speed,
    reach,
    samples_for_latents,
)

__all__ = [
    "OVERLAP",
    "Joint",
    "Vocoder",
    "frames_for_latents",
    "join",
    "latents_at_speed",
    "reach",
    "samples_for_latents",
]
