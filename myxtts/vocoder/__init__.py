"""The HiFi-GAN that turns the GPT's latents into sound, and what it learns from."""

from myxtts.vocoder import losses
from myxtts.vocoder.contest import Players, Round, made_sound, play
from myxtts.vocoder.discriminators import Discriminators, Opinion
from myxtts.vocoder.generator import Vocoder
from myxtts.vocoder.joining import OVERLAP, Joint, join
from myxtts.vocoder.lengths import (
    frames_for_latents,
    latents_at_speed,
    reach,
    samples_for_latents,
)
from myxtts.vocoder.windows import Clips, Windows, fixed_windows, random_windows

__all__ = [
    "OVERLAP",
    "Clips",
    "Discriminators",
    "Joint",
    "Opinion",
    "Players",
    "Round",
    "Vocoder",
    "Windows",
    "fixed_windows",
    "frames_for_latents",
    "join",
    "latents_at_speed",
    "losses",
    "made_sound",
    "play",
    "random_windows",
    "reach",
    "samples_for_latents",
]
