"""The bounds by which `prepare` refuses clips, and how it decodes them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from myxtts.config.base import Count, Settings, to_tuple

Rule = Literal[
    "silent",
    "clipped",
    "short",
    "cut_start",
    "cut_end",
    "long_text",
    "ratio",
    "characters",
    "duplicate_id",
    "duplicate_audio",
    "texts_differ",
]
"""The rules that a user may switch off; the others name clips that nothing could be made of."""


Rules = Annotated[
    tuple[Rule, ...],
    Field(max_length=16, examples=[["cut_end"]]),
    BeforeValidator(to_tuple, json_schema_input_type=list[Rule]),
]
Decibel = Annotated[float, Field(ge=-120, le=0)]


class CourtConfig(Settings):
    """Which clips are refused."""

    shortest_seconds: float = Field(default=0.5, gt=0, le=60)
    """Clips with less sound than this are refused."""
    longest_seconds: float = Field(default=11.6, gt=0, le=600)
    """Clips with more sound than this are refused; XTTS-v2 has room for 11.6 s."""
    longest_text: Count = 400
    """Characters above which a text is refused; XTTS-v2 has room for 402 tokens."""
    silent_db: Decibel = -50.0
    """Loudness of the loudest 20 ms, in dB of full scale, below which a clip is silent."""
    clipped_share: float = Field(default=0.05, gt=0, le=1)
    """Share of samples at full scale above which a clip counts as clipped."""
    edge_db: Decibel = -15.0
    """Loudness of the first or last 20 ms, in dB below the speech, above which speech is cut."""
    ratio_spread: float = Field(default=6.0, gt=0, le=100)
    """Characters per second may lie this many spreads (scaled MAD) off their language's median."""
    ratio_margin: float = Field(default=0.5, ge=0, le=1)
    """Share of the median that characters per second may always lie off it."""
    ratio_lowest: float = Field(default=0.5, ge=0, le=1000)
    """Characters per second below which text is missing, whatever the median."""
    ratio_highest: float = Field(default=40.0, gt=0, le=1000)
    """Characters per second above which sound is missing, whatever the median."""
    ratio_clips: Count = 50
    """Clips of a language from which its median counts; with fewer only the two limits do."""
    lowest_rate: Count = 8000
    """Samples per second below which a recording is too coarse for speech."""
    highest_rate: Count = 768000
    """Samples per second above which a file's header is not believed."""
    decode_seconds: float = Field(default=60.0, ge=0.1, le=3600)
    """Time that decoding one clip may take; a clip that exceeds it twice is refused."""
    links_outside: bool = False
    """Follows symbolic links that lead out of the data folder."""
    off: Rules = ()
    """Rules that are not applied, such as [cut_end]."""
    suspects: Count = 100
    """Accepted clips that suspects.csv lists for each reason, the strangest first."""
