"""Accepted clips → a few large files of samples, and a manifest row for each clip.

A shard that is whole is kept when a killed run is gone on with. The chunks that it was made of
are then gone: so the disk never holds the sound twice, but for one shard.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO

from myxtts.decode import Measures, replaced
from myxtts.decode.chunk import SAMPLES
from myxtts.decode.sound import HASH_BYTES
from myxtts.manifest import BYTES_PER_SAMPLE, GRAIN, Shard
from myxtts.prepare.court import Case
from myxtts.prepare.work import Work


class Shelf:
    """The shards of one prepared folder, filled in the order of the clips."""

    def __init__(self, work: Work, shard_bytes: int) -> None:
        self.work = work
        self.room = shard_bytes // BYTES_PER_SAMPLE
        self.shards: list[Shard] = []
        self.emptied = 0
        """Chunks before this one are in shards that are whole."""

    def rows(self, accepted: Iterable[Case]) -> Iterator[dict[str, Any]]:
        """Stores every clip; yields its manifest row."""
        with ExitStack() as still_open:
            shard: _Shard | None = None
            for case in accepted:
                got = case.measures
                assert got is not None, "only decoded clips are accepted"  # noqa: S101
                if shard is None or (
                    shard.samples and shard.samples + on_grain(got.samples) > self.room
                ):
                    self._close(shard, still_open, case.chunk)
                    shard = still_open.enter_context(_Shard(self.work, len(self.shards)))
                yield _row(case, got, len(self.shards), shard.samples)
                shard.add(case, got.samples)
            self._close(shard, still_open, self.emptied)

    def _close(self, shard: "_Shard | None", still_open: ExitStack, chunk: int) -> None:
        if shard is None:
            return
        still_open.close()
        self.shards.append(shard.finished())
        for number in range(self.emptied, chunk):
            chunk_file(self.work, number).unlink(missing_ok=True)
        self.emptied = max(self.emptied, chunk)


class _Shard:
    """One shard on its way; where its file is whole already, nothing is written."""

    def __init__(self, work: Work, number: int) -> None:
        self.work = work
        self.path = work.out / f"shard-{number:05d}.pcm"
        self.samples = 0
        self.digest = hashlib.blake2b(digest_size=HASH_BYTES)
        self.writing: AbstractContextManager[BinaryIO] | None = None
        self.file: BinaryIO | None = None
        self.chunk: tuple[int, int] | None = None

    def __enter__(self) -> "_Shard":
        if not self.path.exists():
            self.writing = replaced(self.path)
            self.file = self.writing.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.chunk:
            os.close(self.chunk[1])
        if self.writing:
            self.writing.__exit__(*error)

    def add(self, case: Case, samples: int) -> None:
        """Copies a clip out of its chunk; the next one begins on the grain."""
        silence = on_grain(samples) - samples
        self.samples += samples + silence
        if self.file is None:
            return
        if self.chunk is None or self.chunk[0] != case.chunk:
            if self.chunk:
                os.close(self.chunk[1])
            opened = os.open(chunk_file(self.work, case.chunk), os.O_RDONLY | os.O_CLOEXEC)
            self.chunk = (case.chunk, opened)
        size, place = samples * BYTES_PER_SAMPLE, case.place * BYTES_PER_SAMPLE
        sound = os.pread(self.chunk[1], size, place)
        if len(sound) != size:
            raise OSError(0, "a decoded chunk is shorter than it was", str(self.path))
        sound += bytes(silence * BYTES_PER_SAMPLE)
        self.digest.update(sound)
        self.file.write(sound)

    def finished(self) -> Shard:
        """The shard as the manifest names it."""
        if self.file is None:
            with self.path.open("rb") as whole:
                while block := whole.read(1 << 20):
                    self.digest.update(block)
        return Shard(self.path.name, self.samples, self.digest.hexdigest())


def on_grain(samples: int) -> int:
    """A clip's room in a shard: up to where the next one may begin."""
    return -(-samples // GRAIN) * GRAIN


def chunk_file(work: Work, number: int) -> Any:
    """Where the samples of a chunk wait."""
    return (work.chunks / f"{number:06d}").with_suffix(SAMPLES)


def _row(case: Case, got: Measures, shard: int, offset: int) -> dict[str, Any]:
    record = case.clip.record
    return {
        "id": record.id,
        "text": case.text,
        "language": record.language,
        "speaker": record.speaker,
        "shard": shard,
        "offset": offset,
        "samples": got.samples,
        "source": case.clip.source,
        "source_hash": got.source_hash,
        "pcm_hash": got.pcm_hash,
        "source_rate": got.rate,
        "limited": got.limited,
        "speech_db": got.speech_db,
        "floor_db": got.floor_db,
    }
