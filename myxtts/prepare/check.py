"""Proves a prepared set by its hashes: the shards are as written, the sources as they were read."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from myxtts.decode.sound import HASH_BYTES
from myxtts.manifest import Manifest


def check_prepared(manifest: Manifest, data: Path) -> Iterator[str]:
    """Every shard and every accepted clip's source that is not what the manifest says."""
    for shard in manifest.shards:
        if _hash(manifest.folder / shard.name) != shard.hash:
            yield f"{shard.name} is not what was written"
    sources = manifest.table.select(["source", "source_hash"])
    for batch in sources.to_batches():
        for row in batch.to_pylist():
            if _hash(data / row["source"]) != row["source_hash"]:
                yield f"{row['source']} is not what was read"


def _hash(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()
