"""What each stage of training has of its own: codec, GPT and vocoder learn differently."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from myxtts.config.base import Count, Settings, to_tuple

Share = Annotated[float, Field(ge=0, le=1)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Betas = Annotated[tuple[Beta, Beta], BeforeValidator(to_tuple, json_schema_input_type=list[Beta])]
Rate = Annotated[float, Field(gt=0, le=1)]


class DvaeStageConfig(Settings):
    """The codec, from mels to codes and back."""

    steps: Count | None = None
    """Updates; left out, training.epochs passes over the clips."""
    lr: Rate = 2e-3
    """Highest learning rate, where training.lr names none."""
    betas: Betas = (0.9, 0.99)
    """AdamW's two averages."""
    crop_frames: Annotated[int, Field(ge=4, le=4096, multiple_of=4)] = 96
    """Mel frames of each clip that one step learns from."""
    plain_steps: Count = 150
    """Updates as a plain autoencoder, before the codebook starts from its vectors by k-means."""
    commitment: float = Field(default=0.25, ge=0, le=100)
    """Weight of the pull of the encoder's vectors to their codes."""
    decay: Share = 0.97
    """Of the codebook's moving averages; the reference has 0.99, slow for short runs."""
    revive_every: Count = 20
    """Updates from one look for rare codes to the next."""
    revive_below: Share = 0.05
    """A code chosen less often than this share of the mean moves to where vectors lack one."""
    revive_until: Share = 0.8
    """Share of the run after which codes are left alone."""


class GptStageConfig(Settings):
    """The GPT with its conditioning, from text and a voice to codes."""

    steps: Count | None = None
    """Updates; left out, training.epochs passes over the clips."""
    lr: Rate = 1e-4
    """Highest learning rate, where training.lr names none; fine-tuning XTTS-v2 takes 5e-6."""
    betas: Betas = (0.9, 0.96)
    """AdamW's two averages."""
    text_weight: float = Field(default=0.01, ge=0, le=100)
    """Weight of the text's loss; the codes' is 1."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of hidden numbers that are zeroed while learning."""
    ignored: Literal["nothing", "own", "reference"] = "own"
    """Codes left out of the loss: none, each clip's own voice slice, or as the reference errs."""


class VocoderStageConfig(Settings):
    """The vocoder, from the GPT's latents to sound."""

    steps: Count | None = None
    """Updates; left out, training.epochs passes over the clips."""
    lr: Rate = 2e-4
    """Highest learning rate, where training.lr names none."""
    betas: Betas = (0.8, 0.99)
    """AdamW's two averages."""
    window: Annotated[int, Field(ge=4, le=512)] = 16
    """Latents of each clip that one step learns from, 1024 samples at 22.05 kHz each."""


class StagesConfig(Settings):
    """The stages, in their order."""

    dvae: DvaeStageConfig = DvaeStageConfig()
    """Codec."""
    gpt: GptStageConfig = GptStageConfig()
    """GPT."""
    vocoder: VocoderStageConfig = VocoderStageConfig()
    """Vocoder."""
