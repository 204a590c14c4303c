"""The HiFi-GAN that turns the GPT's latents into sound."""

from myxtts.vocoder.generator import Vocoder
from myxtts.vocoder.lengths import (
    frames_for_latents,
    latents_at_speed,
    reach,
    samples_for_latents,
)

__all__ = [
    "Vocoder",
    "frames_for_latents",
    "latents_at_speed",
    "reach",
    "samples_for_latents",
]
