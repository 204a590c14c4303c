"""Clips on disk to batches on a device: the samples, their order, and what is left behind."""

import gc
import os
import struct
import wave
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray

from myxtts.batch import Batch
from myxtts.config import DataConfig
from myxtts.devices import DevicePlan
from myxtts.pipeline import Program, extract, run_ahead, transfer
from myxtts.plan import Plan, Worker, make_plan
from myxtts.reader import (
    Clips,
    MappingError,
    NativeLoadingError,
    ReadAhead,
    Reader,
    ShardSource,
    Source,
    Texts,
    WavSource,
    feed,
    list_wavs,
    open_source,
    read_ahead,
    read_batches,
)
from myxtts.telemetry.record import Recorder, Span

# Logical devices must be there before TensorFlow does anything.
pytestmark = pytest.mark.usefixtures("plan")

DATA = DataConfig(batch_size=4, num_workers=2, prefetch_buffer_size=3)
SILENT = Recorder()
Sounds = list[NDArray[np.int16]]


@pytest.fixture
def sounds() -> Sounds:
    random = np.random.default_rng(3)
    lengths = random.integers(900, 9000, 23)
    return [random.integers(-32768, 32767, n, np.int16, endpoint=True) for n in lengths]


def lay_out(folder: Path, sounds: Sounds, shards: int, grain: int = 1) -> Clips:
    """Shards as `prepare` writes them; the clips go round them."""
    held = [np.empty(0, np.int16)] * shards
    offsets = []
    for index, sound in enumerate(sounds):
        shard = index % shards
        offsets.append(len(held[shard]))
        held[shard] = np.concatenate([held[shard], sound, np.zeros(-len(sound) % grain, np.int16)])
    paths = tuple(folder / f"shard-{shard}.pcm" for shard in range(shards))
    for path, values in zip(paths, held, strict=True):
        values.astype("<i2").tofile(path)
    ids = [f"clip-{index}" for index in range(len(sounds))]
    lengths = np.array([len(sound) for sound in sounds])
    return Clips(ids, np.arange(len(ids)) % shards, np.array(offsets), lengths, paths, grain)


def write_wav(path: Path, sound: NDArray[np.int16], rate: int = 22050, channels: int = 1) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(sound.astype("<i2").tobytes())


def wavs_of(folder: Path, sounds: Sounds) -> tuple[list[str], list[Path]]:
    paths = [folder / f"{index}.wav" for index in range(len(sounds))]
    for path, sound in zip(paths, sounds, strict=True):
        write_wav(path, sound)
    return [f"clip-{index}" for index in range(len(sounds))], paths


def plan_of(source: Source, data: DataConfig = DATA) -> Plan:
    return make_plan(source.samples, data, 5)


def epoch(source: Source, device: str = "/CPU:0", data: DataConfig = DATA) -> list[Batch]:
    plan = plan_of(source, data)
    reader = Reader(source, plan)
    return list(read_batches(reader, range(plan.batches_per_epoch), data, device, SILENT))


def heard(batches: Sequence[Batch]) -> dict[str, NDArray[np.int16]]:
    """Every clip's samples, after a look at the padding."""
    found = {}
    for batch in batches:
        pcm_BS, samples_B, weights_B = (
            batch.tensors[key].numpy() for key in ("pcm", "samples", "weights")
        )
        for row, clip in enumerate(batch.clips):
            assert not pcm_BS[row, samples_B[row] :].any()
            assert weights_B[row] == (clip != feed.NAMELESS) == bool(samples_B[row])
            if clip != feed.NAMELESS:
                assert clip not in found
                found[clip] = pcm_BS[row, : samples_B[row]]
    return found


def same(found: dict[str, NDArray[np.int16]], sounds: Sounds) -> bool:
    wanted = {f"clip-{index}": sound for index, sound in enumerate(sounds)}
    return found.keys() == wanted.keys() and all(
        np.array_equal(found[clip], sound) for clip, sound in wanted.items()
    )


@pytest.mark.parametrize("grain", [1, 32, 1024])
@pytest.mark.parametrize("shards", [1, 5])
@pytest.mark.parametrize("frames", [None, 60])
def test_every_sample_of_every_clip_arrives(
    tmp_path: Path, sounds: Sounds, grain: int, shards: int, frames: int | None
) -> None:
    source = ShardSource(lay_out(tmp_path, sounds, shards, grain))
    data = DATA.model_copy(update={"frames_per_batch": frames})
    assert same(heard(epoch(source, data=data)), sounds)


def test_batches_come_in_the_plans_order_and_shapes(tmp_path: Path, sounds: Sounds) -> None:
    source = ShardSource(lay_out(tmp_path, sounds, 2))
    plan = plan_of(source)
    for batch in epoch(source):
        wanted = plan.batch(batch.number)
        names = [source.ids[clip] for clip in wanted.clips if clip >= 0]
        assert [clip for clip in batch.clips if clip != feed.NAMELESS] == names
        assert batch.tensors["pcm"].shape == [4, plan.ladder.tops[wanted.bucket]]
        assert batch.tensors["pcm"].dtype == tf.int16


@pytest.mark.parametrize("prefetch", [True, False])
def test_batches_land_on_the_data_device(
    tmp_path: Path, sounds: Sounds, plan: DevicePlan, prefetch: bool
) -> None:
    source = ShardSource(lay_out(tmp_path, sounds, 2))
    data = DATA.model_copy(update={"prefetch_to_gpu": prefetch})
    batches = epoch(source, plan.model, data)
    assert all(t.device.endswith("CPU:1") for b in batches for t in b.tensors.values())
    assert same(heard(batches), sounds)


def test_resuming_equals_going_on_over_epochs_and_stretches(
    tmp_path: Path, sounds: Sounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "STRETCH", 4)
    source = ShardSource(lay_out(tmp_path, sounds, 2))
    reader = Reader(source, plan_of(source))
    whole = list(read_batches(reader, range(25), DATA, "/CPU:0", SILENT))
    rest = list(read_batches(reader, range(9, 25), DATA, "/CPU:0", SILENT))
    assert [batch.number for batch in whole] == list(range(25))
    for resumed, went_on in zip(rest, whole[9:], strict=True):
        assert resumed[:2] == went_on[:2]
        assert np.array_equal(resumed.tensors["pcm"], went_on.tensors["pcm"])


def test_workers_read_every_clip_between_them(tmp_path: Path, sounds: Sounds) -> None:
    source = ShardSource(lay_out(tmp_path, sounds, 3))
    read: list[Batch] = []
    for index in range(3):
        part = make_plan(source.samples, DATA, 5, worker=Worker(index, 3))
        numbers = range(part.batches_per_epoch)
        read += read_batches(Reader(source, part), numbers, DATA, "/CPU:0", SILENT)
    assert same(heard(read), sounds)


def test_texts_come_beside_the_clips_in_one_width_for_each_bucket(
    tmp_path: Path, sounds: Sounds
) -> None:
    lengths = np.arange(len(sounds)) % 7
    splits = np.concatenate([[0], np.cumsum(lengths)])
    texts = Texts(np.arange(1, splits[-1] + 1, dtype=np.int32), splits)
    source = ShardSource(lay_out(tmp_path, sounds, 2))
    reader = Reader(source, plan_of(source), texts)
    shapes = set()
    for batch in read_batches(reader, range(14), DATA, "/CPU:0", SILENT):
        text_BL, tokens_B = batch.tensors["text"].numpy(), batch.tensors["text_tokens"].numpy()
        shapes.add((batch.tensors["pcm"].shape[1], text_BL.shape[1]))
        for row, clip in enumerate(batch.clips):
            index = int(clip[5:]) if clip != feed.NAMELESS else None
            wanted = [] if index is None else [*range(splits[index] + 1, splits[index + 1] + 1)]
            assert text_BL[row, : tokens_B[row]].tolist() == wanted
            assert not text_BL[row, tokens_B[row] :].any()
    assert len(shapes) == len({pcm for pcm, _text in shapes})


def test_every_batch_is_a_read_span(tmp_path: Path, sounds: Sounds) -> None:
    spans: list[Span] = []
    recorder = Recorder()
    recorder.on_span = spans.append
    source = ShardSource(lay_out(tmp_path, sounds, 2))
    reader = Reader(source, plan_of(source))
    count = len(list(read_batches(reader, range(3, 8), DATA, "/CPU:0", recorder)))
    assert count == 5
    assert [(span.name, span.batch) for span in spans] == [("read", n) for n in range(3, 8)]


def test_the_reader_feeds_the_pipeline_under_explicit_moves(
    tmp_path: Path, sounds: Sounds, plan: DevicePlan
) -> None:
    source = ShardSource(lay_out(tmp_path, sounds, 2))
    program = Program(
        lambda tensors, _number: tf.cast(tensors["pcm"], tf.float32), "/CPU:2", name="floats"
    )
    batches_plan = plan_of(source)
    raw = read_batches(Reader(source, batches_plan), range(12), DATA, "/CPU:2", SILENT)
    with run_ahead(transfer(extract(raw, program, SILENT), plan.models, SILENT)) as ahead:
        batches = [batch for (batch,) in ahead]
    assert [batch.number for batch in batches] == list(range(12))
    assert all(batch.tensors.device.endswith("CPU:1") for batch in batches)
    assert program.traces <= len(batches_plan.ladder.tops)


def left_behind() -> tuple[int, int]:
    """Threads and open files of this process."""
    return tuple(len([*Path("/proc/self", kind).iterdir()]) for kind in ("task", "fd"))  # type: ignore[return-value]


def test_an_abandoned_reader_leaves_no_thread_file_or_mapping(
    tmp_path: Path, sounds: Sounds
) -> None:
    clips = lay_out(tmp_path, sounds, 3)
    epoch(ShardSource(clips))  # TensorFlow's own threads start once.
    gc.collect()
    threads, files = left_behind()
    for _ in range(4):
        source = ShardSource(clips)
        batches = read_batches(Reader(source, plan_of(source)), range(50), DATA, "/CPU:0", SILENT)
        next(batches)
        assert str(tmp_path) in Path("/proc/self/maps").read_text()
        del batches, source
        gc.collect()
    now = left_behind()
    assert now[0] <= threads
    assert now[1] <= files
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_a_shard_shorter_than_its_clips_is_refused_before_it_is_mapped(
    tmp_path: Path, sounds: Sounds
) -> None:
    clips = lay_out(tmp_path, sounds, 2)
    size = clips.shards[1].stat().st_size
    os.truncate(clips.shards[1], size - 2)
    with pytest.raises(MappingError, match=rf"shard-1.pcm has {size - 2} bytes.* need {size}"):
        ShardSource(clips)


def test_a_missing_and_an_odd_shard_are_refused(tmp_path: Path, sounds: Sounds) -> None:
    clips = lay_out(tmp_path, sounds, 2)
    with clips.shards[0].open("ab") as file:
        file.write(b"x")
    with pytest.raises(MappingError, match=r"shard-0\.pcm has"):
        ShardSource(clips)
    clips.shards[0].unlink()
    with pytest.raises(MappingError, match="No such file"):
        ShardSource(clips)


def test_a_big_endian_machine_is_refused(
    tmp_path: Path, sounds: Sounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips = lay_out(tmp_path, sounds, 1)
    monkeypatch.setattr("sys.byteorder", "big")
    with pytest.raises(MappingError, match="little-endian"):
        ShardSource(clips)


def test_a_grain_that_could_reach_over_a_bucket_is_refused(tmp_path: Path, sounds: Sounds) -> None:
    with pytest.raises(ValueError, match="grain of 48"):
        ShardSource(replace(lay_out(tmp_path, sounds, 1), grain=48))


def test_a_shard_without_clips_is_allowed(tmp_path: Path, sounds: Sounds) -> None:
    clips = lay_out(tmp_path, sounds, 1)
    (tmp_path / "empty").touch()
    source = ShardSource(replace(clips, shards=(*clips.shards, tmp_path / "empty")))
    assert same(heard(epoch(source)), sounds)


def test_settings_say_how_many_batches_wait() -> None:
    plan = make_plan(np.full(160, 9000), DataConfig(batch_size=16), 0)
    assert read_ahead(DataConfig(batch_size=16), plan) == ReadAhead(16, 2)
    small = DataConfig(batch_size=16, prefetch_buffer_size=1, buffer_size=100)
    assert read_ahead(small, plan) == ReadAhead(4, 4)
    assert read_ahead(small.model_copy(update={"prefetch_to_gpu": False}), plan).device == 0


def test_wav_files_are_read_as_they_are(tmp_path: Path, sounds: Sounds) -> None:
    source = WavSource(list_wavs(*wavs_of(tmp_path, sounds)))
    assert same(heard(epoch(source)), sounds)


def test_wavs_and_shards_give_the_same_batches(tmp_path: Path, sounds: Sounds) -> None:
    shards, wavs = lay_out(tmp_path, sounds, 2), list_wavs(*wavs_of(tmp_path, sounds))
    prepared = open_source(DATA, lambda: shards, lambda: pytest.fail("listed the folder"))
    native = DATA.model_copy(update={"use_tf_native_loading": True})
    raw = open_source(native, lambda: pytest.fail("opened the shards"), lambda: wavs)
    for one, other in zip(epoch(prepared), epoch(raw), strict=True):
        assert one[:2] == other[:2]
        assert all(np.array_equal(one.tensors[k], other.tensors[k]) for k in one.tensors)


def sample_format(path: Path, code: int, bits: int) -> None:
    """Writes a WAV header of any format over a second of silence."""
    data = bytes(22050 * bits // 8)
    rate = (22050, 22050 * bits // 8, bits // 8, bits)
    head = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, code, 1, *rate
    )
    path.write_bytes(head + struct.pack("<4sI", b"data", len(data)) + data)


@pytest.mark.parametrize(
    ("code", "bits", "told"), [(1, 24, "24-bit, 22050 Hz, 1 channel"), (3, 32, "unknown format")]
)
def test_a_wav_that_tensorflow_cannot_decode_is_named_with_three_remedies(
    tmp_path: Path, sounds: Sounds, code: int, bits: int, told: str
) -> None:
    ids, paths = wavs_of(tmp_path, sounds)
    sample_format(paths[7], code, bits)
    with pytest.raises(
        NativeLoadingError, match=rf"TF-native loading failed: clip clip-7 .*{told}"
    ) as got:
        list_wavs(ids, paths)
    for remedy in ("ffmpeg -i IN -ar 22050 -ac 1", "myxtts prepare", "use_tf_native_loading=false"):
        assert remedy in got.value.remedy


@pytest.mark.parametrize(
    ("rate", "channels", "told"), [(44100, 1, "44100 Hz"), (22050, 2, "2 channels")]
)
def test_a_wav_of_another_rate_or_shape_is_refused(
    tmp_path: Path, sounds: Sounds, rate: int, channels: int, told: str
) -> None:
    ids, paths = wavs_of(tmp_path, sounds)
    for path in paths[3:5]:
        write_wav(path, sounds[3][:800], rate, channels)
    with pytest.raises(NativeLoadingError, match=f"clip-3 .*{told}.*and 1 more of 23 clips"):
        list_wavs(ids, paths)


@pytest.mark.parametrize("content", [b"", b"RIFF", b"ID3 no wave at all" * 9, None])
def test_a_file_that_is_no_wav_is_refused(
    tmp_path: Path, sounds: Sounds, content: bytes | None
) -> None:
    ids, paths = wavs_of(tmp_path, sounds)
    paths[0].unlink()
    if content is not None:
        paths[0].write_bytes(content)
    with pytest.raises(NativeLoadingError, match=r"clip-0 .*no 16-bit WAV file"):
        list_wavs(ids, paths)


def cut(path: Path) -> None:
    os.truncate(path, 200)


def gone(path: Path) -> None:
    path.unlink()


def longer(path: Path) -> None:
    write_wav(path, np.zeros(20_000, np.int16))


@pytest.mark.parametrize("spoil", [cut, gone, longer])
def test_a_wav_spoilt_after_it_was_listed_is_named_when_its_batch_comes(
    tmp_path: Path, sounds: Sounds, spoil: Callable[[Path], None]
) -> None:
    source = WavSource(list_wavs(*wavs_of(tmp_path, sounds)))
    spoil(tmp_path / "9.wav")
    with pytest.raises(NativeLoadingError, match=r"clip clip-9 \(.*9\.wav\)"):
        epoch(source)


def test_a_clip_cut_in_its_data_is_refused_by_its_header(tmp_path: Path, sounds: Sounds) -> None:
    ids, paths = wavs_of(tmp_path, sounds)
    cut(paths[2])
    with pytest.raises(NativeLoadingError, match=r"clip-2 .*has 200 bytes"):
        list_wavs(ids, paths)


def own_memory() -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


def test_the_mapped_sound_is_never_copied_whole(tmp_path: Path) -> None:
    count, samples = 1000, 32768
    shard = tmp_path / "shard-00000.pcm"
    with shard.open("wb") as file:
        file.truncate(2 * count * samples)  # 66 MB, of holes.
    offsets = np.arange(count, dtype=np.int64) * samples
    ids = [str(number) for number in range(count)]
    clips = Clips(ids, np.zeros(count, np.int32), offsets, np.full(count, samples), (shard,), 32)
    source = ShardSource(clips)
    before = own_memory()
    batches = read_batches(Reader(source, plan_of(source)), range(4), DATA, "/CPU:0", SILENT)
    assert sum(len(batch.clips) for batch in batches) > 0
    assert own_memory() - before < shard.stat().st_size / 2
