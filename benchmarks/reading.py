"""Clips a second of the reader, and of the other ways to read the same clips.

    .venv/bin/python benchmarks/reading.py

All ways give the same padded batches of one plan, in rounds that take turns, so that a
neighbour's burst hits all of them alike. The clips lie in the page cache: this measures code,
not a disk. GB are those of the clips' samples, without padding.
"""

import os
import sys
import tempfile
import time
import wave
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import tensorflow as tf
from figures import hand_out, missed, parser, spread, told
from numpy.typing import NDArray

from myxtts.config import DataConfig, DevicesConfig
from myxtts.devices import open_devices, plan_devices
from myxtts.plan import Plan, Table, make_plan
from myxtts.reader import Clips, Reader, ShardSource, Source, WavSource, list_wavs, read_batches
from myxtts.telemetry.record import Recorder

RATE = 22050
ALIGNED = 32
HOST = "/CPU:0"
TARGETS = {
    "memmap through from_generator": 1.5,
    "WAV files, native": 5.0,
    "soundfile in threads, int16": 10.0,
}
"""How many times as fast the reader has to be."""
COPY_TARGET = 2.0
"""How many times the plain copy's time the reader may take."""

Batches = Iterator[Any]


@dataclass(frozen=True)
class Corpus:
    """The same clips as shards, as WAV files and as one TFRecord, and the batches to make."""

    clips: Clips
    packed: Clips
    wavs: list[Path]
    record: Path
    data: DataConfig
    plan: Plan
    epochs: int

    @property
    def batches(self) -> int:
        """How many are read in one measurement."""
        return self.plan.batches_per_epoch * self.epochs

    @property
    def gigabytes(self) -> float:
        """Samples of the clips in one measurement."""
        return float(self.plan.samples.sum() * 2 * self.epochs / 1e9)


def make_corpus(folder: Path, count: int, epochs: int, data: DataConfig) -> Corpus:
    """Noise of 1 to 10 s with the lengths that LJSpeech has, written in every form."""
    random = np.random.default_rng(0)
    lengths = ((1.1 + 9 * random.beta(1.87, 1.2, count)) * RATE).astype(np.int64)
    sounds = [random.integers(-8000, 8000, length, np.int16) for length in lengths]
    wavs = [folder / f"{index}.wav" for index in range(count)]
    for path, sound in zip(wavs, sounds, strict=True):
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(sound.tobytes())
    record = folder / "clips.tfrecord"
    plan = make_plan(lengths, data, 0)
    with tf.io.TFRecordWriter(str(record)) as writer:
        for clip in plan.table(0, plan.batches_per_epoch).clips.ravel():
            writer.write(sounds[clip].tobytes() if clip >= 0 else b"")
    aligned, packed = (lay_out(folder, sounds, grain) for grain in (ALIGNED, 1))
    return Corpus(aligned, packed, wavs, record, data, plan, epochs)


def lay_out(folder: Path, sounds: list[NDArray[np.int16]], grain: int) -> Clips:
    """Four shards; clips begin at multiples of the grain."""
    shard = np.arange(len(sounds)) * 4 // len(sounds)
    offset = np.zeros(len(sounds), np.int64)
    paths = tuple(folder / f"grain-{grain}-{number}.pcm" for number in range(4))
    ends = [0] * 4
    files = [path.open("wb") for path in paths]
    for index, (number, sound) in enumerate(zip(shard, sounds, strict=True)):
        offset[index] = ends[number]
        padded = np.pad(sound, (0, -len(sound) % grain))
        files[number].write(padded.tobytes())
        ends[number] += len(padded)
    for file in files:
        file.close()
    lengths = np.array([len(sound) for sound in sounds])
    return Clips([str(i) for i in range(len(sounds))], shard, offset, lengths, paths, grain)


def through_reader(corpus: Corpus, source: Source) -> Batches:
    """Our own reader, prepared or native."""
    reader = Reader(source, corpus.plan)
    return read_batches(reader, range(corpus.batches), corpus.data, HOST, Recorder())


def rows_of(corpus: Corpus) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Each batch's length and clips, as the plan has them."""
    table: Table = corpus.plan.table(0, corpus.batches)
    for bucket, clips in zip(table.buckets, table.clips, strict=True):
        yield corpus.plan.ladder.tops[bucket], clips[: corpus.plan.rows[bucket]]


class Copy:
    """The samples of each clip copied to a batch that is already there: what memory allows."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        clips = corpus.packed
        maps = [np.memmap(path, np.int16, mode="r") for path in clips.shards]
        # Bare arrays: a memmap's own slicing costs more than the copy.
        arrays = [np.asarray(each) for each in maps]
        places = zip(clips.shard, clips.offset, clips.samples, strict=True)
        self.sounds = [arrays[shard][at : at + length] for shard, at, length in places]
        self.rooms = {
            top: np.zeros((max(corpus.plan.rows), top), np.int16) for top in corpus.plan.ladder.tops
        }

    def __call__(self) -> Batches:
        """The copy alone, without padding."""
        for top, clips in rows_of(self.corpus):
            room = self.rooms[top]
            for row, clip in enumerate(clips):
                if clip >= 0:
                    sound = self.sounds[clip]
                    room[row, : len(sound)] = sound
            yield room

    def batches(self) -> Batches:
        """New padded batches, as a generator makes them for `from_generator`."""
        for top, clips in rows_of(self.corpus):
            batch = np.zeros((len(clips), top), np.int16)
            for row, clip in enumerate(clips):
                if clip >= 0:
                    sound = self.sounds[clip]
                    batch[row, : len(sound)] = sound
            yield batch

    def generator(self) -> Batches:
        """The same behind `from_generator`."""
        signature = tf.TensorSpec([None, None], tf.int16)
        made = tf.data.Dataset.from_generator(self.batches, output_signature=signature)
        return iter(made.prefetch(self.corpus.data.prefetch_buffer_size))


def tfrecord(corpus: Corpus) -> Batches:
    """A record file, sequential: its order is the order it was written in."""

    def decode(record: tf.Tensor) -> tf.Tensor:
        return tf.io.decode_raw(record, tf.int16)

    calls = min(corpus.data.num_workers, corpus.data.prefetch_buffer_size)
    sounds = tf.data.TFRecordDataset(str(corpus.record)).map(decode, calls)
    padded = sounds.padded_batch(corpus.data.batch_size, [None])
    return iter(padded.repeat(corpus.epochs).prefetch(corpus.data.prefetch_buffer_size))


def soundfiles(corpus: Corpus, kind: str) -> Batches:
    """A thread for each worker decodes whole files, to 16 bits or, as is the habit, to floats."""

    def load(job: tuple[int, NDArray[np.int32]]) -> NDArray[Any]:
        top, clips = job
        batch = np.zeros((len(clips), top), kind)
        for row, clip in enumerate(clips):
            if clip >= 0:
                sound, _rate = soundfile.read(corpus.wavs[clip], dtype=kind)
                batch[row, : len(sound)] = sound
        return batch

    with ThreadPoolExecutor(corpus.data.num_workers) as pool:
        for batch in pool.map(load, rows_of(corpus)):
            yield tf.convert_to_tensor(batch)


def measure(begin: Callable[[], Batches], corpus: Corpus) -> float:
    """Seconds for all batches after the first, which pays for building the pipeline."""
    batches = begin()
    next(batches)
    start = time.perf_counter()
    count = 1 + sum(1 for _ in batches)
    seconds = time.perf_counter() - start
    if count != corpus.batches:
        sys.exit(f"{count} batches came of {corpus.batches}")
    return seconds


def ways(corpus: Corpus) -> dict[str, Callable[[], Batches]]:
    """Every way to read, by the name it has in the table."""
    copy = Copy(corpus)
    aligned, packed = ShardSource(corpus.clips), ShardSource(corpus.packed)
    native = WavSource(list_wavs(corpus.clips.ids, corpus.wavs))
    return {
        "plain memory copy": copy,
        "reader": lambda: through_reader(corpus, aligned),
        "reader, clips not aligned": lambda: through_reader(corpus, packed),
        "memmap through from_generator": copy.generator,
        "TFRecord, sequential": lambda: tfrecord(corpus),
        "WAV files, native": lambda: through_reader(corpus, native),
        "soundfile in threads, int16": lambda: soundfiles(corpus, "int16"),
        "soundfile in threads, float32": lambda: soundfiles(corpus, "float32"),
    }


def summarise(rounds: list[dict[str, float]], corpus: Corpus) -> dict[str, dict[str, list[float]]]:
    """Median, least and greatest over the rounds; a ratio is taken within its round."""
    clips = len(corpus.plan.samples) * corpus.epochs
    figures = {}
    for name in rounds[0]:
        seconds = [each[name] for each in rounds]
        figures[name] = {
            "clips_per_second": spread([clips / each for each in seconds]),
            "gb_per_second": spread([corpus.gigabytes / each for each in seconds]),
            "reader_is_times_as_fast": spread([each[name] / each["reader"] for each in rounds]),
        }
    return figures


def show(figures: dict[str, dict[str, list[float]]]) -> None:
    """One line for each way, and the targets."""
    print(f"{'':32}{'clips/s':>24}{'GB/s':>22}{'reader is … × as fast':>26}")
    for name, row in figures.items():
        clips, gigabytes, times = row.values()
        print(
            f"{name:32}"
            + told(clips).rjust(24)
            + told(gigabytes, ".2f").rjust(22)
            + told(times, ".2f").rjust(26)
        )
    reached = {name: row["reader_is_times_as_fast"][0] for name, row in figures.items()}
    targets = {**TARGETS, "plain memory copy": 1 / COPY_TARGET}
    print(*missed(targets, reached), sep="\n")


def main() -> None:
    """Every way once in each round, after one round that counts for nothing."""
    asked = parser(__doc__)
    asked.add_argument("--clips", type=int, default=1500)
    asked.add_argument("--epochs", type=int, default=6, help="passes in one measurement")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--workers", type=int, default=os.cpu_count())
    options = asked.parse_args()
    open_devices(plan_devices(DevicesConfig(emulate=1), []))
    data = DataConfig(num_workers=options.workers, prefetch_buffer_size=options.workers + 2)
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_corpus(Path(folder), options.clips, options.epochs, data)
        every = ways(corpus)
        rounds = [
            {name: measure(begin, corpus) for name, begin in every.items()}
            for _ in range(options.rounds + 1)
        ]
        figures = summarise(rounds[1:], corpus)
    hand_out(figures, options, show, padding=corpus.plan.waste)


if __name__ == "__main__":
    main()
