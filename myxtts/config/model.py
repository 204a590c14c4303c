"""The network's settings; their defaults are the size `normal`, presets.py has the others."""

from collections.abc import Mapping
from math import prod
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from myxtts.config.base import LARGEST, ConflictError, Count, Counts, Settings
from myxtts.config.presets import SIZES

MEL_HOP = 256  # Samples of 24 kHz sound for each frame that enters the vocoder.


class GptConfig(Settings):
    """The network that turns text into audio codes; the last two codes are start and stop."""

    layers: Count = 16
    """Transformer blocks."""
    width: Count = 768
    """Numbers in each hidden vector."""
    heads: Count = 12
    """Attention heads of each block; they share the width evenly."""
    text_tokens: Count = 6681
    """Entries of the text vocabulary."""
    text_start: int = Field(default=261, ge=0, le=LARGEST)
    """Id put before each text: [START] in the vocabulary."""
    text_stop: int = Field(default=0, ge=0, le=LARGEST)
    """Id put after each text: [STOP] in the vocabulary."""
    max_text_tokens: Count = 402
    """Longest text, in tokens."""
    audio_tokens: Count = 1026
    """The codec's codes, start and stop."""
    max_audio_tokens: Count = 605
    """Longest speech, in codes of 1024 samples at 22.05 kHz."""

    @property
    def audio_start(self) -> int:
        """The code before the first."""
        return self.audio_tokens - 2

    @property
    def audio_stop(self) -> int:
        """The code after the last."""
        return self.audio_tokens - 1

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ConflictError(
                f"width {self.width} does not divide into {self.heads} heads",
                f"write a multiple of {self.heads}, such as width: "
                f"{max(1, self.width // self.heads) * self.heads}",
                "width",
                "heads",
            )
        return self


class CodecConfig(Settings):
    """The DVAE that turns mel frames into codes, four frames to one."""

    codes: Count = 1024
    """Entries of the codebook."""
    code_width: Count = 512
    """Numbers in each codebook entry."""
    width: Count = 512
    """Channels after the first convolution; the second has twice as many."""
    residual_blocks: Count = 3
    """Residual blocks in the encoder, and as many in the decoder."""


class VocoderConfig(Settings):
    """The HiFi-GAN generator that turns GPT latents into 24 kHz sound."""

    width: Count = 256
    """Channels before the first upsampling; each upsampling halves them."""
    upsample_rates: Counts = (8, 8, 2, 2)
    """Samples out for each sample in, stage by stage; their product is 256."""
    upsample_kernels: Counts = (16, 16, 4, 4)
    """Kernel length of each stage's transposed convolution, in samples."""
    residual_kernels: Counts = (3, 7, 11)
    """Kernel lengths of the residual units whose mean ends each stage, in samples."""
    residual_dilations: Counts = (1, 3, 5)
    """Spacing of the taps in each residual unit's convolutions, in samples."""

    @model_validator(mode="after")
    def _stages_fit_together(self) -> Self:
        rates, kernels = self.upsample_rates, self.upsample_kernels
        if len(rates) != len(kernels):
            raise ConflictError(
                f"{len(rates)} upsample_rates and {len(kernels)} upsample_kernels",
                "give each stage one of both",
                "upsample_rates",
                "upsample_kernels",
            )
        if prod(rates) != MEL_HOP:
            raise ConflictError(
                f"upsample_rates multiply to {prod(rates)}, a mel hop has {MEL_HOP} samples",
                "write rates such as [8, 8, 2, 2]",
                "upsample_rates",
            )
        if self.width % 2 ** len(rates):
            raise ConflictError(
                f"width {self.width} cannot be halved {len(rates)} times",
                f"write a multiple of {2 ** len(rates)}",
                "width",
                "upsample_rates",
            )
        return self

    @model_validator(mode="after")
    def _kernels_keep_the_length(self) -> Self:
        pairs = zip(self.upsample_kernels, self.upsample_rates, strict=False)
        if any(kernel < rate or (kernel - rate) % 2 for kernel, rate in pairs):
            raise ConflictError(
                "an upsampling kernel must be its rate or longer by an even number",
                "write kernels twice the rates, such as [16, 16, 4, 4]",
                "upsample_kernels",
                "upsample_rates",
            )
        if any(kernel % 2 == 0 for kernel in self.residual_kernels):
            raise ConflictError(
                "an even residual kernel has no middle",
                "write odd numbers such as [3, 7, 11]",
                "residual_kernels",
            )
        return self


class DiscriminatorConfig(Settings):
    """The networks that tell the vocoder's sound from real sound while it learns."""

    periods: Counts = (2, 3, 5, 7, 11)
    """One network each, which compares samples so far apart."""
    period_width: Count = 32
    """Channels of each period's first layer; its last have 32 times as many."""
    scales: int = Field(default=3, ge=0, le=8)
    """Networks that hear the sound whole: at its own rate, at half of it, and so on."""
    scale_width: Count = 128
    """Channels of each scale's first layer; its last have 8 times as many."""
    scale_groups: Count = 16
    """Groups of channels, in the layers between, that do not hear each other."""

    @model_validator(mode="after")
    def _each_period_once(self) -> Self:
        if len(set(self.periods)) != len(self.periods):
            raise ConflictError(
                "a period is written twice", "write each once, such as [2, 3, 5, 7, 11]", "periods"
            )
        return self

    @model_validator(mode="after")
    def _groups_share_the_width(self) -> Self:
        if self.scale_width % self.scale_groups:
            raise ConflictError(
                f"scale_width {self.scale_width} does not divide into {self.scale_groups} groups",
                f"write a multiple of {self.scale_groups}, such as scale_width: "
                f"{max(1, self.scale_width // self.scale_groups) * self.scale_groups}",
                "scale_width",
                "scale_groups",
            )
        return self


class SpeakerConfig(Settings):
    """The network that turns a reference clip into one vector for its voice."""

    width: Count = 512
    """Length of the speaker vector."""
    filters: Counts = (32, 64, 128, 256)
    """Channels of the four stages."""
    blocks: Counts = (3, 4, 6, 3)
    """Residual blocks of the four stages."""

    @model_validator(mode="after")
    def _four_stages(self) -> Self:
        if len(self.filters) != 4 or len(self.blocks) != 4:
            raise ConflictError(
                f"{len(self.filters)} filters and {len(self.blocks)} blocks",
                "write four of each, such as filters: [32, 64, 128, 256], blocks: [3, 4, 6, 3]",
                "filters",
                "blocks",
            )
        if any(count % 8 for count in self.filters):
            raise ConflictError(
                "squeeze-excite divides filters by 8",
                "write multiples of 8, such as [32, 64, 128, 256]",
                "filters",
            )
        return self


class ModelConfig(Settings):
    """The network: a size, and numbers that depart from it where they are written."""

    size: Literal["tiny", "small", "normal", "big"] = "normal"
    """Where the numbers below start from; big is the released XTTS-v2."""
    gpt: GptConfig = GptConfig()
    """Text to codes."""
    codec: CodecConfig = CodecConfig()
    """Mel frames to codes and back."""
    vocoder: VocoderConfig = VocoderConfig()
    """Latents to sound."""
    discriminator: DiscriminatorConfig = DiscriminatorConfig()
    """What the vocoder learns from."""
    speaker: SpeakerConfig = SpeakerConfig()
    """Reference clip to voice."""

    @model_validator(mode="before")
    @classmethod
    def _start_from_size(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        size = given.get("size")
        start = SIZES.get(size, {}) if isinstance(size, str) else {}
        own = {part: given.get(part, {}) for part in start}
        parts = {
            part: {**start[part], **values} if isinstance(values, Mapping) else values
            for part, values in own.items()
        }
        return {**given, **parts}

    @model_validator(mode="after")
    def _codec_and_gpt_agree(self) -> Self:
        if self.gpt.audio_tokens != self.codec.codes + 2:
            raise ConflictError(
                f"the GPT has {self.gpt.audio_tokens} audio tokens, the codec {self.codec.codes} "
                "codes, and start and stop need two more",
                f"write model.gpt.audio_tokens: {self.codec.codes + 2}",
                "gpt.audio_tokens",
                "codec.codes",
            )
        return self
