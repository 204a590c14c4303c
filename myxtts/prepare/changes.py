"""What a set was made of: one row for each clip, so that a later run can say what changed."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from myxtts.prepare.clip import Clip
from myxtts.prepare.listing import read_listing, to_line

SOURCES = "sources.parquet"
ROWS_AT_ONCE = 4096
SCHEMA = pa.schema([("source", pa.string()), ("digest", pa.binary(8))])


def write_sources(file: BinaryIO, listed: Iterable[Clip]) -> None:
    """Eight bytes for each clip, in which its line, its size and its time of change went."""
    waiting = iter(listed)
    with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        while some := list(islice(waiting, ROWS_AT_ONCE)):
            rows = [{"source": _name(clip), "digest": _digest(clip)} for clip in some]
            writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))


def tell_changes(out: Path, listing: Path) -> Iterator[str]:
    """One line: how many clips were added, changed and removed since `out` was made."""
    try:
        table = pq.read_table(out / SOURCES)
    except (OSError, pa.ArrowException):
        yield f"{out}: its {SOURCES} cannot be read; preparing again"
        return
    before = dict(zip(table["source"].to_pylist(), table["digest"].to_pylist(), strict=True))
    now = Counter[str]()
    for clip in read_listing(listing):
        digest = before.pop(_name(clip), None)
        now["added" if digest is None else "same" if digest == _digest(clip) else "changed"] += 1
    if now["added"] or now["changed"] or before:
        yield (
            f"{out} is out of date: {now['added']} clips added, {now['changed']} changed, "
            f"{len(before)} removed; preparing again"
        )
    else:
        yield f"{out} was made by other settings or is damaged; preparing again"


def _name(clip: Clip) -> str:
    name = clip.source if clip.record.audio else f"{clip.record.list}:{clip.record.line}"
    return name.encode(errors="backslashreplace").decode()


def _digest(clip: Clip) -> bytes:
    return hashlib.blake2b(to_line(clip), digest_size=8).digest()
