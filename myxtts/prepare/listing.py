"""The listing: what the list says and the folder holds, each clip checked against the disk.

Legend: one JSON line per clip, in the order of the list and then of the folder. Its digest is
what a later run compares: texts, sizes and times of change are all in it.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

from myxtts.errors import UserError
from myxtts.prepare.clip import Clip, Record, Refusal
from myxtts.prepare.detect import Source
from myxtts.prepare.files import audio_files, locate, relative, unwritable

LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]{2,4})?")


@dataclass
class Counts:
    """How many clips a list named, and how many more the folder held."""

    listed: int = 0
    found: int = 0

    @property
    def all(self) -> int:
        """Every clip that must be accepted or refused."""
        return self.listed + self.found


def clips(source: Source, language: str | None, links: bool, counts: Counts) -> Iterator[Clip]:
    """Every clip that the list names and then every audio file that it does not."""
    named: set[int] = set()
    for record in source.records(links):
        counts.listed += 1
        clip = _checked(_complete(record, source, language), source.root, links)
        named.add(_key(clip.source))
        yield clip
    if not source.whole:
        return
    for path in audio_files(source.root, links):
        if _key(path) not in named:
            counts.found += 1
            yield _checked(Record(path, None), source.root, links)


def _key(path: str) -> int:
    """Eight bytes for each path: the one thing here that grows with the data, keep it small."""
    digest = hashlib.blake2b(path.encode(errors="surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _complete(record: Record, source: Source, language: str | None) -> Record:
    if record.fault:
        return record
    spoken = record.language or language
    if spoken is None:
        what = f"{source.root}: in which language are these clips? The list does not say"
        raise UserError(what, "write it: --language en (or fa, de …)")
    return replace(
        record, language=plain_language(spoken), speaker=record.speaker or source.root.name
    )


def plain_language(code: str) -> str:
    """`en_US` → `en`: languages go without their region, Chinese under the name XTTS-v2 gives."""
    first = code.strip().lower().replace("_", "-").partition("-")[0]
    return "zh-cn" if first == "zh" else first


def _checked(record: Record, root: Path, links: bool) -> Clip:
    if record.fault:
        return Clip(record, record.audio, refusal=Refusal("line", record.fault))
    place = locate(root, record.audio, links)
    if isinstance(place, Refusal):
        # The same name that the search of the folder has for it.
        return Clip(record, relative(root, record.audio), refusal=place)
    path, found = place
    return Clip(record, path, found.st_size, found.st_mtime_ns, _fault(record))


def _fault(record: Record) -> Refusal | None:
    if record.text is None:
        return Refusal("untranscribed", "no line names it", "a line with its text")
    for text in (record.text, record.id, record.speaker):
        if why := unwritable(text):
            return Refusal("line", why)
    if not any(character.isalnum() for character in record.text):
        return Refusal("empty_text", "no letter", "at least 1 letter")
    if not LANGUAGE.fullmatch(record.language):
        return Refusal("language", record.language, "a code such as en")
    return None


def to_line(clip: Clip) -> bytes:
    """A clip as one line of JSON."""
    return json.dumps(asdict(clip)).encode() + b"\n"


def from_line(line: bytes) -> Clip:
    """The clip that `to_line` wrote."""
    fields = json.loads(line)
    refusal = fields.pop("refusal")
    record = Record(**fields.pop("record"))
    return Clip(record, **fields, refusal=Refusal(*refusal) if refusal else None)


def digest_of(listed: Iterable[Clip], copy: BinaryIO | None = None) -> str:
    """One number for the whole listing, which is written to `copy` on the way."""
    digest = hashlib.blake2b(digest_size=16)
    for clip in listed:
        line = to_line(clip)
        digest.update(line)
        if copy:
            copy.write(line)
    return digest.hexdigest()


def read_listing(path: Path) -> Iterator[Clip]:
    """The clips of a written listing."""
    with path.open("rb") as lines:
        yield from map(from_line, lines)
