"""What a list says of a clip, what becomes of that, and why a clip is refused.

Legend: `source` is the audio file's path relative to the data folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Record:
    """What a list says, nothing of it checked; line 0 where no list names the clip."""

    audio: str
    text: str | None
    list: str = ""
    line: int = 0
    id: str = ""
    speaker: str = ""
    language: str = ""
    fault: str = ""
    """Why the line cannot be read; then nothing else holds."""


class Refusal(NamedTuple):
    """A rule that a clip breaks, what was measured and what is allowed."""

    rule: str
    measured: str
    bound: str = ""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return REMEDIES[self.rule]


@dataclass(frozen=True)
class Clip:
    """A record whose file was found, or the reason why not."""

    record: Record
    source: str
    size: int = 0
    mtime_ns: int = 0
    refusal: Refusal | None = None


REMEDIES: Mapping[str, str] = {
    "line": "write the line as the other lines are, in UTF-8",
    "outside": "copy the file into the data folder and name it there; for links that are meant: "
    "data.court.links_outside=true",
    "missing": "put the audio file there or delete the line",
    "untranscribed": "write its text into the list, or delete the file",
    "empty_text": "write what is said",
    "language": "write a code such as en or fa",
    "unreadable": "convert it: ffmpeg -i FILE -ar 22050 -ac 1 NEW.wav",
    "not_finite": "export the recording again: it holds numbers that are no sound",
    "empty": "record it again or delete the line",
    "long": "split the recording and its text at a pause",
    "short": "join it with its neighbour, or delete the line",
    "silent": "record it again, or raise its level",
    "clipped": "record it again at a lower level",
    "cut_start": "cut the recording again, with a little silence before the first word",
    "cut_end": "cut the recording again, with a little silence after the last word",
    "long_text": "split the text and its recording at a pause",
    "characters": "spell them out, or train a vocabulary that has them",
    "ratio": "listen: text and recording are not of the same speech, or half of one is missing",
    "duplicate_id": "give each clip an id of its own",
    "duplicate_audio": "keep one of them",
    "texts_differ": "keep the line whose text is right",
}
"""Every rule, in the order in which the court asks."""
