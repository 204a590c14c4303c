"""One chunk of clips → a file of samples and a file of measures, each whole or not there."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

from myxtts.decode.measures import Measures, measure
from myxtts.decode.sound import Limits, UnreadableError, read_sound

SAMPLES, MEASURES = ".pcm", ".jsonl"


@dataclass(frozen=True)
class Job:
    """Clips to decode, by their place in the listing, and where the result belongs."""

    folder: Path
    clips: tuple[tuple[int, str], ...]
    target: Path
    limits: Limits
    failures: Mapping[int, str] = field(default_factory=dict)
    """Clips that ended the process that decoded them: they are named, not tried again."""


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file written beside, brought to the disk and renamed: it is there whole or not at all."""
    # The process number keeps apart a process that was left behind and the one after it.
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def decode_chunk(job: Job, announce: Callable[[int], None]) -> None:
    """Decodes the clips in order; the measures come last and say that the chunk is done."""
    found: list[Measures] = []
    with replaced(job.target.with_suffix(SAMPLES)) as samples:
        for index, source in job.clips:
            if index in job.failures:
                found.append(Measures(index, failure=job.failures[index]))
                continue
            announce(index)
            found.append(_decode(job, index, source, samples))
    with replaced(job.target.with_suffix(MEASURES)) as books:
        for measures in found:
            books.write(json.dumps(asdict(measures)).encode() + b"\n")


def read_measures(target: Path) -> list[Measures]:
    """What `decode_chunk` measured, in the order of its clips."""
    with target.with_suffix(MEASURES).open("rb") as lines:
        return [Measures(**json.loads(line)) for line in lines]


def _decode(job: Job, index: int, source: str, samples: BinaryIO) -> Measures:
    try:
        sound = read_sound(job.folder / source, job.limits)
    except UnreadableError as error:
        return Measures(index, failure=str(error))
    samples.write(sound.pcm.tobytes())
    return measure(index, sound, job.limits.rate)
