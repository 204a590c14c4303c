"""The manifest of prepared clips: one Parquet file that says where each clip's samples lie.

Legend: `offset` and `samples` count 16-bit samples inside one shard; a clip never crosses shards.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from myxtts.errors import UserError

NAME = "manifest.parquet"
VERSION = 1
BYTES_PER_SAMPLE = 2
GRAIN = 32
"""Clips begin at multiples of so many samples, 64 bytes: slicing a mapped shard copies nothing."""
ROWS_AT_ONCE = 4096
_ABOUT = "myxtts"
AGAIN = "prepare the data again: myxtts prepare DATA --out DIR"

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("language", pa.string()),
        ("speaker", pa.string()),
        ("shard", pa.int32()),
        ("offset", pa.int64()),
        ("samples", pa.int32()),
        ("source", pa.string()),  # Relative to the data folder.
        ("source_hash", pa.string()),  # Of the file's bytes; blake2b, 16 bytes.
        ("pcm_hash", pa.string()),  # Of the prepared samples: what a cache of codes goes by.
        ("source_rate", pa.int32()),
        ("limited", pa.int32()),  # Samples that had to be limited to fit into 16 bits.
        ("speech_db", pa.float32()),
        ("floor_db", pa.float32()),
    ]
)


@dataclass(frozen=True)
class Shard:
    """One file of samples, 16-bit little-endian, without a header."""

    name: str
    samples: int
    hash: str

    @property
    def bytes(self) -> int:
        """The file's size."""
        return self.samples * BYTES_PER_SAMPLE


@dataclass(frozen=True)
class Manifest:
    """Prepared clips: `table` has a row for each, in the order of the list that named them."""

    folder: Path
    table: pa.Table
    shards: tuple[Shard, ...]
    rate: int

    @property
    def shard_paths(self) -> tuple[Path, ...]:
        """The files of samples, in the order in which `shard` counts them."""
        return tuple(self.folder / shard.name for shard in self.shards)

    @property
    def seconds(self) -> float:
        """All the sound, without the zeros between clips."""
        return int(self.column("samples").sum()) / self.rate

    def column(self, name: str) -> Any:
        """One column as a NumPy array; numbers come without a copy where Arrow has none."""
        return self.table.column(name).to_numpy()


def write_manifest(
    file: BinaryIO, rows: Iterable[Mapping[str, Any]], shards: Sequence[Shard], rate: int
) -> int:
    """Writes rows a few thousand at a time, so that memory does not grow with them.

    `shards` may still be filling while the rows are drawn: it is written last.
    """
    waiting, count = iter(rows), 0
    with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        while some := list(islice(waiting, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(some, schema=SCHEMA))
            count += len(some)
        about = {"version": VERSION, "rate": rate, "shards": [asdict(shard) for shard in shards]}
        writer.add_key_value_metadata({_ABOUT: json.dumps(about)})
    return count


def read_manifest(folder: Path) -> Manifest:
    """Reads what `prepare` wrote and proves that every shard is there in its full size.

    A mapped file that is shorter than the manifest says would kill the process that reads it.
    """
    path = folder / NAME
    try:
        with pq.ParquetFile(path) as file:
            about = _about(path, file.metadata.metadata or {})
            table = file.read()
    except FileNotFoundError:
        raise UserError(f"{folder} holds no prepared clips ({NAME} is missing)", AGAIN) from None
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path} cannot be read ({_first_line(error)})", AGAIN) from None
    shards = tuple(Shard(**shard) for shard in about["shards"])
    manifest = Manifest(folder, table, shards, about["rate"])
    for problem in _problems(manifest):
        raise UserError(f"{path}: {problem}", AGAIN)
    return manifest


def joined(first: Manifest, second: Manifest, prefix: str) -> Manifest:
    """The clips of both, the second's behind; `prefix` keeps its ids apart from the first's."""
    if first.rate != second.rate:
        raise UserError(
            f"{first.folder} has {first.rate} samples a second, {second.folder} {second.rate}",
            AGAIN,
        )
    ids = pa.array([f"{prefix}{name}" for name in second.column("id")], pa.string())
    numbers = pa.array(second.column("shard") + np.int32(len(first.shards)), pa.int32())
    table = second.table.select(SCHEMA.names)
    for name, column in (("id", ids), ("shard", numbers)):
        table = table.set_column(SCHEMA.get_field_index(name), name, column)
    # A path from the root stands for itself behind any folder.
    paths = [str(path.absolute()) for path in second.shard_paths]
    shards = (*first.shards, *map(_renamed, second.shards, paths))
    whole = pa.concat_tables([first.table.select(SCHEMA.names), table])
    return Manifest(first.folder, whole, shards, first.rate)


def _renamed(shard: Shard, name: str) -> Shard:
    return replace(shard, name=name)


def _about(path: Path, metadata: Mapping[bytes, bytes]) -> Mapping[str, Any]:
    if _ABOUT.encode() not in metadata:
        raise UserError(f"{path} is no manifest of prepared clips", AGAIN)
    about: dict[str, Any] = json.loads(metadata[_ABOUT.encode()])
    if about["version"] != VERSION:
        raise UserError(f"{path} has version {about['version']}, this reads {VERSION}", AGAIN)
    return about


def _problems(manifest: Manifest) -> Iterator[str]:
    """A missing column, a shard of another size, a clip outside its shard."""
    table = manifest.table
    for field in SCHEMA:
        if (
            field.name not in table.schema.names
            or table.schema.field(field.name).type != field.type
        ):
            yield f"the column {field.name} ({field.type}) is missing"
            return
    for shard in manifest.shards:
        yield from _size_problem(manifest.folder / shard.name, shard.bytes)
    sizes = np.array([shard.samples for shard in manifest.shards])
    numbers, begins = manifest.column("shard"), manifest.column("offset")
    known = (numbers >= 0) & (numbers < len(sizes))
    ends = begins + manifest.column("samples")
    inside = known & (begins >= 0) & (ends <= sizes[np.where(known, numbers, 0)])
    for clip in np.flatnonzero(~inside)[:1]:
        yield f"clip {clip} lies outside its shard"


def _size_problem(path: Path, wanted: int) -> Iterator[str]:
    try:
        size = path.stat().st_size
    except OSError as error:
        yield f"{path.name} cannot be read ({error.strerror})"
    else:
        if size != wanted:
            yield f"{path.name} has {size} bytes, not {wanted}"


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
