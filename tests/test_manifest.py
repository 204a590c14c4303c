"""The manifest: what is written is read, and what does not fit is refused before it is mapped."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clips import ljspeech, prepared, speech

from myxtts.errors import UserError
from myxtts.manifest import GRAIN, NAME, SCHEMA, Manifest, Shard, read_manifest, write_manifest


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return prepared(ljspeech(tmp_path_factory.mktemp("clips") / "data", 50))


def test_every_clip_lies_where_its_row_says(manifest: Manifest) -> None:
    shards = [np.memmap(path, "<i2", mode="r") for path in manifest.shard_paths]
    assert len(shards) > 1
    for number, row in enumerate(manifest.table.to_pylist()):
        pcm = shards[row["shard"]][row["offset"] : row["offset"] + row["samples"]]
        assert np.abs(pcm / 32768 - speech(0.6, number)).max() < 1 / 32768
        assert (row["id"], row["text"]) == (f"c{number:04d}", f"Sentence {number}.")


def test_shards_are_filled_to_their_size_and_no_clip_crosses_two(manifest: Manifest) -> None:
    sizes = [path.stat().st_size for path in manifest.shard_paths]
    assert all(size <= 1 << 20 for size in sizes)
    assert all(size > (1 << 20) - 2 * 13230 for size in sizes[:-1])
    assert manifest.seconds == pytest.approx(50 * 0.6)


def test_every_clip_begins_on_the_grain(manifest: Manifest) -> None:
    assert set(manifest.column("offset") % GRAIN) == {0}
    assert manifest.column("offset").max() > 0


def test_a_shard_that_was_cut_is_an_error_before_it_is_mapped(tmp_path: Path) -> None:
    manifest = prepared(ljspeech(tmp_path / "data", 3))
    with manifest.shard_paths[0].open("r+b") as file:
        file.truncate(100)
    with pytest.raises(UserError, match=r"shard-00000.pcm has 100 bytes, not 79488"):
        read_manifest(manifest.folder)


def row(**changes: object) -> dict[str, object]:
    texts = {"id": "a", "text": "a", "language": "en", "speaker": "s", "source": "a.wav"}
    hashes = {"source_hash": "00", "pcm_hash": "00"}
    numbers = {"shard": 0, "offset": 0, "samples": 4, "source_rate": 22050, "limited": 0}
    return {**texts, **hashes, **numbers, "speech_db": -9.0, "floor_db": -60.0, **changes}


def written(folder: Path, **changes: object) -> Path:
    (folder / "s.pcm").write_bytes(bytes(8))
    with (folder / NAME).open("wb") as file:
        assert write_manifest(file, [row(**changes)], [Shard("s.pcm", 4, "00")], 22050) == 1
    return folder


@pytest.mark.parametrize("changes", [{"offset": 1}, {"shard": 1}, {"shard": -1}, {"offset": -1}])
def test_a_clip_outside_its_shard_is_an_error(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(UserError, match="clip 0 lies outside its shard"):
        read_manifest(written(tmp_path, **changes))


def test_columns_come_as_numpy_arrays(tmp_path: Path) -> None:
    manifest = read_manifest(written(tmp_path))
    assert manifest.column("samples").tolist() == [4]
    assert manifest.column("samples").dtype == np.int32


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "holds no prepared clips"),
        (b"", "cannot be read"),
        (b"PAR1 and then noise PAR1", "cannot be read"),
    ],
)
def test_what_is_no_manifest_is_told(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / NAME).write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        read_manifest(tmp_path)
    assert "myxtts prepare" in caught.value.remedy


def test_another_version_and_a_foreign_file_are_told_apart(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row()], schema=SCHEMA)
    pq.write_table(table, tmp_path / NAME)
    with pytest.raises(UserError, match="is no manifest"):
        read_manifest(tmp_path)
    old = SCHEMA.with_metadata({"myxtts": '{"version": 99}'})
    pq.write_table(table.cast(old), tmp_path / NAME)
    with pytest.raises(UserError, match="has version 99, this reads 1"):
        read_manifest(tmp_path)
