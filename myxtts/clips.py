"""The user's clips, from a folder to batches: prepared on first use, planned, read.

This is the only module that knows prepare, text, plan and reader together.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from myxtts.batch import Batch
from myxtts.config import Config, DataConfig, TextConfig
from myxtts.devices import Say
from myxtts.errors import UserError
from myxtts.manifest import GRAIN, NAME, Manifest, joined, read_manifest
from myxtts.plan import ALONE, NO_CLIP, Plan, Worker, drawn, held_out, make_plan
from myxtts.prepare import RATE, Order, Vocabulary, prepare, recognise
from myxtts.reader import (
    Clips,
    Reader,
    ShardSource,
    Source,
    Texts,
    Wavs,
    WavSource,
    list_wavs,
    read_batches,
)
from myxtts.telemetry.record import Recorder
from myxtts.text import Tokenizer, clean_text

REPLAYED = "replay/"
"""Before the ids of clips from other data."""


@dataclass(frozen=True)
class ClipSound:
    """The user's own clips, as batches for a loop."""

    reader: Reader
    settings: DataConfig

    @property
    def shapes(self) -> int:
        """The buckets."""
        return len(self.reader.plan.ladder.tops)

    def seconds(self, number: int) -> float:
        """The sound in a batch."""
        clips = self.reader.plan.batch(number).clips
        return float(np.sum(self.reader.source.samples[clips[clips != NO_CLIP]])) / RATE

    def open(
        self, device: str, steps: int, recorder: Recorder
    ) -> AbstractContextManager[Iterator[Batch]]:
        """Batches for so many steps, from the first."""
        return nullcontext(self.read(device, range(steps), recorder))

    def read(self, device: str, numbers: range, recorder: Recorder) -> Iterator[Batch]:
        """The batches with these numbers."""
        return read_batches(self.reader, numbers, self.settings, device, recorder)


@dataclass(frozen=True)
class TokenVocabulary:
    """The dataset court's view of a tokenizer."""

    tokenizer: Tokenizer
    settings: TextConfig
    signature: str

    def unknown_characters(self, text: str, language: str) -> dict[str, int]:
        """Characters of the cleaned text that have no token, and how often each occurs."""
        unknown: dict[str, int] = {}
        for _place, character in self.tokenizer.unknown(clean_text(text, language, self.settings)):
            unknown[character] = unknown.get(character, 0) + 1
        return unknown


def open_vocabulary(settings: TextConfig) -> TokenVocabulary | None:
    """The vocabulary that texts are judged and encoded by; None if none is named, or it grows."""
    if settings.vocabulary is None or settings.new_tokens:
        return None
    tokenizer = Tokenizer.load(settings.vocabulary)
    signature = f"{settings.vocabulary.read_bytes()!r}{settings.model_dump_json()}"
    return TokenVocabulary(tokenizer, settings, signature)


def prepare_clips(data: Path, config: Config, vocabulary: Vocabulary | None, say: Say) -> Manifest:
    """A prepared folder as it is; any other is prepared beside itself, or found up to date."""
    if (data / NAME).is_file():
        return read_manifest(data)
    out = data.with_name(f"{data.stem}-prepared")
    say(f"Preparing {data} into {out}")
    return prepare(Order(data, out, config.data, vocabulary=vocabulary), say)


@dataclass(frozen=True)
class Part:
    """The clips that are put to one use: to learn from, or to judge."""

    name: str
    manifest: Manifest
    rows: NDArray[np.intp]
    """Where they stand in the manifest."""
    replayed: int = 0
    """How many of them, the last, are replayed from other data."""

    @property
    def own(self) -> "Part":
        """Without what is replayed."""
        return replace(self, rows=self.rows[: len(self.rows) - self.replayed], replayed=0)

    def of_at_least(self, samples: int) -> "Part":
        """Without the clips that have fewer samples."""
        long = self.manifest.column("samples")[self.rows] >= samples
        replayed = int(long[len(self.rows) - self.replayed :].sum())
        return replace(self, rows=self.rows[long], replayed=replayed)

    def texts(self, settings: TextConfig) -> Iterator[tuple[str, str]]:
        """Each clip's cleaned text, and its language."""
        texts, languages = (self.manifest.column(name)[self.rows] for name in ("text", "language"))
        for text, language in zip(texts, languages, strict=True):
            yield clean_text(text, language, settings), language


def find_parts(config: Config, vocabulary: Vocabulary | None, say: Say) -> tuple[Part, Part]:
    """The clips to learn from and those to judge, with their share of what is replayed."""
    parts = _own_parts(config, vocabulary, say)
    if config.data.replay is None:
        return parts
    return _with_replay(parts, config, vocabulary, say)


def _own_parts(config: Config, vocabulary: Vocabulary | None, say: Say) -> tuple[Part, Part]:
    """The training clips and those that judge: others that are named, or some held out."""
    manifest = prepare_clips(_training_data(config), config, vocabulary, say)
    held = held_out(manifest.column("id").tolist(), config.data)
    train = Part("train", manifest, np.flatnonzero(~held))
    if config.data.val is None:
        return train, Part("val", manifest, np.flatnonzero(held))
    judges = prepare_clips(config.data.val, config, vocabulary, say)
    return train, Part("val", judges, np.arange(len(judges.table)))


def _with_replay(
    parts: tuple[Part, Part], config: Config, vocabulary: Vocabulary | None, say: Say
) -> tuple[Part, Part]:
    """Some clips of other data behind each part's own: no clip that judges is learned from."""
    data, folder = config.data, config.data.replay
    assert folder is not None  # noqa: S101
    about = {"language": data.replay_language, "format": None, "val": None}
    other = config.model_copy(update={"data": data.model_copy(update=about)})
    manifest = prepare_clips(folder, other, vocabulary, say)
    held = held_out(manifest.column("id").tolist(), other.data)
    train, judge = (np.flatnonzero(these) for these in (~held, held))
    if not len(train):
        raise UserError(f"{folder} has no clip to replay", "name a folder with more clips")
    wanted, judging = (
        round(len(part.rows) * data.replay_share / (1 - data.replay_share)) for part in parts
    )
    say(
        f"replay: {wanted} clips, {100 * wanted / (wanted + len(parts[0].rows)):.0f} % of an epoch,"
        f" out of {len(train)} in {folder}"
        + (f": each {wanted / len(train):.1f} times" if wanted > len(train) else "")
    )
    seed, fewest = config.training.seed, min(judging, len(judge))
    return (
        _replaying(parts[0], manifest, train, wanted, seed),
        _replaying(parts[1], manifest, judge, fewest, seed),
    )


def _replaying(part: Part, other: Manifest, rows: NDArray[np.intp], count: int, seed: int) -> Part:
    """With so many of these rows of the other clips."""
    chosen = rows[drawn(other.column("id")[rows].tolist(), count, seed)]
    behind = chosen + len(part.manifest.table)
    return Part(
        part.name,
        joined(part.manifest, other, REPLAYED),
        np.concatenate([part.rows, behind]),
        replayed=count,
    )


def open_clips(config: Config, devices: int, say: Say) -> Reader:
    """What reads the training clips: those that are not held out to judge."""
    if config.data.use_tf_native_loading:
        source = WavSource(_wav_files(_training_data(config)))
        return _plan_and_tell(source, None, config, devices, say)
    vocabulary = open_vocabulary(config.text)
    train, _ = find_parts(config, vocabulary, say)
    return open_part(train, vocabulary.tokenizer if vocabulary else None, config, devices, say)


def open_part(
    part: Part,
    tokenizer: Tokenizer | None,
    config: Config,
    devices: int,
    say: Say,
    worker: Worker = ALONE,
) -> Reader:
    """What reads these clips, with their texts where there is something to encode them by."""
    if not len(part.rows):
        raise UserError(
            f"every clip of {part.manifest.folder} is held out to judge",
            "hold out fewer: data.validation_share=0.01, or name others: --val-data FOLDER",
        )
    texts = _encoded(part, tokenizer, config.text) if tokenizer else None
    return _plan_and_tell(ShardSource(_located(part)), texts, config, devices, say, worker)


def _training_data(config: Config) -> Path:
    if config.data.train is None:
        raise UserError("no training clips are named", "name them: --train-data FOLDER")
    return config.data.train


def _plan_and_tell(
    source: Source,
    texts: Texts | None,
    config: Config,
    devices: int,
    say: Say,
    worker: Worker = ALONE,
) -> Reader:
    plan: Plan = make_plan(source.samples, config.data, config.training.seed, devices, worker)
    hours = float(np.sum(source.samples)) / RATE / 3600
    say(
        f"{len(source.samples)} clips, {hours:.2f} hours, "
        f"{plan.batches_per_epoch} batches an epoch in {len(plan.ladder.tops)} shapes, "
        f"{100 * plan.waste:.1f} % padding"
    )
    return Reader(source, plan, texts)


def _located(part: Part) -> Clips:
    names = ("id", "shard", "offset", "samples")
    columns = {name: part.manifest.column(name)[part.rows] for name in names}
    return Clips(
        ids=columns["id"].tolist(),
        shard=columns["shard"],
        offset=columns["offset"],
        samples=columns["samples"],
        shards=part.manifest.shard_paths,
        grain=GRAIN,
    )


def _encoded(part: Part, tokenizer: Tokenizer, settings: TextConfig) -> Texts:
    each = [np.array(tokenizer.encode(*pair), np.int32) for pair in part.texts(settings)]
    splits = np.concatenate([[0], np.cumsum([len(ids) for ids in each])]).astype(np.int64)
    return Texts(np.concatenate(each), splits)


def _wav_files(data: Path) -> Wavs:
    """The folder's own files, unprepared and unjudged but for their headers."""
    found = recognise(data)
    records = list(found.records(links=False))
    for record in records:
        if record.fault:
            raise UserError(
                f"{record.list}:{record.line}: {record.fault}",
                "mend the line, or let `myxtts prepare` judge every clip: "
                "data.use_tf_native_loading=false",
            )
    return list_wavs(
        [record.id or record.audio for record in records],
        [found.root / record.audio for record in records],
    )
