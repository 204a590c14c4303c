"""The user's clips, from a folder to batches: prepared on first use, planned, read.

This is the only module that knows prepare, text, plan and reader together.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from myxtts.batch import Batch
from myxtts.config import Config, DataConfig, TextConfig
from myxtts.devices import Say
from myxtts.errors import UserError
from myxtts.manifest import GRAIN, NAME, Manifest, read_manifest
from myxtts.plan import NO_CLIP, Plan, held_out, make_plan
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
        return nullcontext(read_batches(self.reader, range(steps), self.settings, device, recorder))


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
    """The vocabulary that texts are judged and encoded by; None when the settings name none."""
    if settings.vocabulary is None:
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


def open_clips(config: Config, devices: int, say: Say) -> Reader:
    """What reads the training clips: those that are not held out to judge."""
    data = config.data.train
    if data is None:
        raise UserError("no training clips are named", "name them: --train-data FOLDER")
    if config.data.use_tf_native_loading:
        return _plan_and_tell(WavSource(_wav_files(data)), None, config, devices, say)
    vocabulary = open_vocabulary(config.text)
    manifest = prepare_clips(data, config, vocabulary, say)
    rows = np.flatnonzero(~held_out(manifest.column("id").tolist(), config.data))
    if not len(rows):
        raise UserError(
            f"every clip of {data} is held out to judge",
            "hold out fewer: data.validation_share=0.01, or name others: --val-data FOLDER",
        )
    source = ShardSource(_located(manifest, rows))
    texts = _encoded(manifest, rows, vocabulary) if vocabulary else None
    return _plan_and_tell(source, texts, config, devices, say)


def _plan_and_tell(
    source: Source, texts: Texts | None, config: Config, devices: int, say: Say
) -> Reader:
    plan: Plan = make_plan(source.samples, config.data, config.training.seed, devices)
    hours = float(np.sum(source.samples)) / RATE / 3600
    say(
        f"{len(source.samples)} clips, {hours:.2f} hours, "
        f"{plan.batches_per_epoch} batches an epoch in {len(plan.ladder.tops)} shapes, "
        f"{100 * plan.waste:.1f} % padding"
    )
    return Reader(source, plan, texts)


def _located(manifest: Manifest, rows: NDArray[np.intp]) -> Clips:
    columns = {name: manifest.column(name)[rows] for name in ("id", "shard", "offset", "samples")}
    return Clips(
        ids=columns["id"].tolist(),
        shard=columns["shard"],
        offset=columns["offset"],
        samples=columns["samples"],
        shards=manifest.shard_paths,
        grain=GRAIN,
    )


def _encoded(manifest: Manifest, rows: NDArray[np.intp], vocabulary: TokenVocabulary) -> Texts:
    pairs = zip(manifest.column("text")[rows], manifest.column("language")[rows], strict=True)
    return _joined(
        vocabulary.tokenizer.encode(clean_text(text, language, vocabulary.settings), language)
        for text, language in pairs
    )


def _joined(texts: Iterable[list[int]]) -> Texts:
    each = [np.array(ids, np.int32) for ids in texts]
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
