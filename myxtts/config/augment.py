"""Random changes to the clips that are learned from; all are off until a share is given."""

from typing import Self

from pydantic import Field, model_validator

from myxtts.config.base import ConflictError, Settings


class AugmentConfig(Settings):
    """What may happen to a clip, in this order, each to its own share of all clips."""

    speed: float = Field(default=0.0, ge=0, le=1)
    """Share of clips played slower or faster, pitch and all; none outgrows its batch."""
    speed_from: float = Field(default=0.9, ge=0.8, le=1)
    """Slowest speed; 0.9 makes a clip a ninth longer."""
    speed_to: float = Field(default=1.1, ge=1, le=1.25)
    """Fastest speed."""
    band_limit: float = Field(default=0.0, ge=0, le=1)
    """Share of clips that lose their high notes, as over a telephone."""
    band_limit_from_hz: float = Field(default=3000.0, ge=500, le=11000)
    """Lowest limit, in Hz."""
    band_limit_to_hz: float = Field(default=8000.0, ge=500, le=11000)
    """Highest limit, in Hz."""
    noise: float = Field(default=0.0, ge=0, le=1)
    """Share of clips with white noise."""
    noise_from_db: float = Field(default=10.0, ge=-20, le=100)
    """Loudest noise: the clip's power over it, in dB."""
    noise_to_db: float = Field(default=40.0, ge=-20, le=100)
    """Softest noise, in dB."""
    gain: float = Field(default=0.0, ge=0, le=1)
    """Share of clips made louder or softer; none beyond full scale."""
    gain_db: float = Field(default=6.0, gt=0, le=40)
    """Largest change either way, in dB."""

    @model_validator(mode="after")
    def _ranges_rise(self) -> Self:
        for low, high in (
            ("band_limit_from_hz", "band_limit_to_hz"),
            ("noise_from_db", "noise_to_db"),
        ):
            least, most = getattr(self, low), getattr(self, high)
            if least > most:
                raise ConflictError(
                    f"{low} {least:g} is above {high} {most:g}",
                    f"write {low}: {most:g} and {high}: {least:g}",
                    low,
                    high,
                )
        return self
