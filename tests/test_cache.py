"""Codes on the disk: found again, made again where they are damaged, never mixed up."""

import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.cache import CacheError, CodeCache, Key, cache_folder, maker_of, open_cache
from myxtts.cache.store import INDEX, VALUES
from myxtts.config import DataConfig
from myxtts.plan import NO_CLIP, Once, make_plan, mark
from myxtts.reader import Codes, Reader, Texts, read_batches
from myxtts.reader.rows import Values
from myxtts.telemetry.record import Recorder

CLIPS = [bytes([number]) * 16 for number in range(6)]


def key(clip: int, top: int = 2048) -> Key:
    return Key(CLIPS[clip], top)


def codes_of(clip: int, top: int = 2048) -> NDArray[np.int64]:
    return np.arange(clip + 1) + 100 * clip + top // 1024


def opened(folder: Path, said: list[str] | None = None) -> CodeCache:
    return open_cache(folder, (said if said is not None else []).append)


def filled(folder: Path, *batches: tuple[int, ...]) -> CodeCache:
    cache = opened(folder)
    with cache.writing():
        for clips in batches:
            cache.put([key(clip) for clip in clips], [codes_of(clip) for clip in clips])
    return cache


def told(cache: CodeCache, clip: int, top: int = 2048) -> list[int] | None:
    """A clip's codes, as the reader would have them."""
    codes = cache.codes([CLIPS[clip]], [top])
    begin, count = int(codes.begins_KC[0, 0]), int(codes.lengths_KC[0, 0])
    return None if begin < 0 else codes.values.numpy()[begin : begin + count].tolist()


def test_codes_are_found_again_by_clip_and_padded_length(tmp_path: Path) -> None:
    filled(tmp_path, (0, 1), (2,))
    cache = opened(tmp_path)
    assert [told(cache, clip) for clip in range(3)] == [codes_of(c).tolist() for c in range(3)]
    assert told(cache, 0, 3072) is None
    assert told(cache, 3) is None


def test_what_is_there_is_not_written_twice(tmp_path: Path) -> None:
    filled(tmp_path, (0, 1))
    before = (tmp_path / VALUES).stat().st_size
    filled(tmp_path, (1, 0), (1,))
    assert (tmp_path / VALUES).stat().st_size == before


@pytest.mark.parametrize("lost", [1, 20, 60, 100])
def test_a_torn_index_leaves_the_batches_before_it_and_takes_more(
    lost: int, tmp_path: Path
) -> None:
    filled(tmp_path, (0,), (1,), (2,))
    index = (tmp_path / INDEX).read_bytes()
    (tmp_path / INDEX).write_bytes(index[:-lost])
    said: list[str] = []
    cache = opened(tmp_path, said)
    assert told(cache, 2) is None
    assert told(cache, 0) == codes_of(0).tolist()
    assert any("bytes of its index" in line for line in said)
    filled(tmp_path, (1, 2, 3))
    again = opened(tmp_path, said := [])
    assert [told(again, clip) for clip in range(4)] == [codes_of(c).tolist() for c in range(4)]
    assert said == []


def test_damaged_values_are_forgotten_and_made_again(tmp_path: Path) -> None:
    filled(tmp_path, (0,), (1,))
    values = bytearray((tmp_path / VALUES).read_bytes())
    values[0] ^= 255
    (tmp_path / VALUES).write_bytes(values)
    said: list[str] = []
    cache = opened(tmp_path, said)
    assert (told(cache, 0), told(cache, 1)) == (None, codes_of(1).tolist())
    assert any("the codes of 1 clips" in line for line in said)
    filled(tmp_path, (0,))
    assert told(opened(tmp_path), 0) == codes_of(0).tolist()


@pytest.mark.parametrize("left", [b"", b"\x01", b"\x01\x02\x03"])
def test_values_without_a_record_are_skipped(left: bytes, tmp_path: Path) -> None:
    filled(tmp_path, (0,))
    with (tmp_path / VALUES).open("ab") as file:
        file.write(left)
    assert told(opened(tmp_path), 0) == codes_of(0).tolist()
    filled(tmp_path, (1,))
    assert told(opened(tmp_path), 1) == codes_of(1).tolist()


def test_values_cut_short_cost_only_what_they_held(tmp_path: Path) -> None:
    filled(tmp_path, (0,), (4,))
    os.truncate(tmp_path / VALUES, 6)
    cache = opened(tmp_path)
    assert (told(cache, 0), told(cache, 4)) == (codes_of(0).tolist(), None)


def test_only_one_process_writes(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    with (
        first.writing(),
        pytest.raises(CacheError, match="another training writes codes"),
        second.writing(),
    ):
        pass
    with second.writing():
        second.put([key(0)], [codes_of(0)])
    assert told(second, 0) == codes_of(0).tolist()


def test_nothing_is_put_without_the_lock(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not open for writing"):
        opened(tmp_path).put([key(0)], [codes_of(0)])


def test_a_code_beyond_16_bits_is_refused(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    with cache.writing(), pytest.raises(ValueError, match="16 bits"):
        cache.put([key(0)], [np.array([40_000])])


def test_a_full_disk_is_told_with_what_would_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = opened(tmp_path)

    def full(*_arguments: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(CodeCache, "_append", full)
    with cache.writing(), pytest.raises(CacheError, match="No space left") as raised:
        cache.put([key(0)], [codes_of(0)])
    assert "data.cache=FOLDER" in raised.value.remedy
    assert "--arrangement split" in raised.value.remedy


def write_until_killed(folder: str) -> None:
    cache = open_cache(Path(folder), print)
    with cache.writing():
        for number in range(10**6):
            clip = number.to_bytes(16, "little")
            cache.put([Key(clip, 2048)], [np.array([number % 1000] * 50)])


def test_a_kill_leaves_a_prefix_that_is_right(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writer = context.Process(target=write_until_killed, args=(str(tmp_path),))
    writer.start()
    while not (tmp_path / INDEX).exists() or (tmp_path / INDEX).stat().st_size < 20_000:
        assert writer.is_alive()
    writer.kill()
    writer.join()
    cache = opened(tmp_path)
    clips = [number.to_bytes(16, "little") for number in range(len(cache))]
    codes = cache.codes(clips, [2048])
    assert (codes.lengths_KC == 50).all()
    firsts = codes.values.numpy()[codes.begins_KC[0]]
    assert firsts.tolist() == [number % 1000 for number in range(len(cache))]


def test_the_maker_changes_with_weights_levels_and_settings(tmp_path: Path) -> None:
    file = tmp_path / "codec.safetensors"
    file.write_bytes(b"weights")
    levels = np.ones(80, np.float32)
    makers = {maker_of(file, {"codes": 32}, levels), maker_of(file, {"codes": 64}, levels)}
    makers |= {maker_of(file, {"codes": 32}, levels * 2)}
    again = maker_of(file, {"codes": 32}, levels)
    file.write_bytes(b"other weights")
    makers |= {maker_of(file, {"codes": 32}, levels)}
    assert len(makers) == 4
    assert again in makers


def test_another_makers_codes_are_never_taken(tmp_path: Path) -> None:
    said: list[str] = []
    cache_folder(tmp_path, "aa", said.append).mkdir(parents=True)
    assert said == []
    other = cache_folder(tmp_path, "bb", said.append)
    assert other != cache_folder(tmp_path, "aa", said.append)
    assert len(said) == 1
    assert "another codec" in said[0]


class Silence:
    """Clips of zeros, for a reader."""

    def __init__(self, samples: NDArray[np.int64]) -> None:
        self.ids: Sequence[str] = [f"c{number}" for number in range(len(samples))]
        self.samples: Values = samples

    def inputs(self, table: object, tops_N: object, rows_N: NDArray[np.int64]) -> object:
        return rows_N

    def read(self, rows: tf.Tensor, top: tf.Tensor) -> tf.Tensor:
        return tf.zeros([rows, top], tf.int16)

    def explain(self, error: Exception, clips: object) -> Exception:
        return error


def test_the_reader_gives_each_row_its_codes_in_its_batchs_length() -> None:
    samples = np.array([900, 1024, 2000, 2048, 1500])
    data = DataConfig(batch_size=2, buckets=2, num_workers=1)
    plan = make_plan(samples, data, seed=0)
    begins = np.arange(10).reshape(2, 5) * 3
    lengths = np.array([[1, 1, 0, 0, 0], [1, 1, 2, 2, 2]])
    codes = Codes(tf.constant(np.arange(30), tf.int16), begins, lengths)
    texts = Texts(np.arange(5), np.arange(6))
    reader = Reader(Silence(samples), plan, texts, codes)
    batches = read_batches(reader, range(plan.batches_per_epoch), data, "/CPU:1", Recorder())
    for batch, number in zip(batches, range(plan.batches_per_epoch), strict=True):
        planned = plan.batch(number)
        width = plan.ladder.tops[planned.bucket] // 1024 + 1
        for row, clip in enumerate(planned.clips.tolist()):
            begin, count = begins[planned.bucket, clip], lengths[planned.bucket, clip]
            own = [] if clip == NO_CLIP else list(range(begin, begin + count))
            wanted = own + [0] * (width - len(own))
            assert batch.tensors["codes"].numpy()[row].tolist() == wanted


def test_a_clip_without_codes_is_never_read_as_if_it_had_none() -> None:
    samples = np.array([900, 1000])
    data = DataConfig(batch_size=2, num_workers=1)
    none = np.full((1, 2), -1)
    codes = Codes(tf.zeros([4], tf.int16), none, np.zeros((1, 2), np.int64))
    reader = Reader(Silence(samples), make_plan(samples, data, seed=0), None, codes)
    with pytest.raises(ValueError, match="nobody has made"):
        next(read_batches(reader, range(1), data, "/CPU:1", Recorder()))


def test_once_gives_every_wanted_clip_once_in_its_bucket() -> None:
    samples = np.random.default_rng(0).integers(500, 20_000, 60)
    plan = make_plan(samples, DataConfig(batch_size=4, buckets=3), seed=1)
    wanted = np.zeros([3, 60], bool)
    mark(wanted, plan.table(0, 2 * plan.batches_per_epoch))
    once = Once(plan, wanted)
    found = np.zeros([3, 60], int)
    for number in range(once.batches_per_epoch):
        bucket, clips = once.batch(number)[1:]
        assert len(clips) == plan.rows[bucket]
        np.add.at(found[bucket], clips[clips != NO_CLIP], 1)
    assert (found == wanted).all()
