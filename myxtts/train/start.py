"""What a training goes on from: a model's own settings, its vocabulary, and the very same file."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from myxtts.checkpoint.disk import replace_file
from myxtts.clips import Part
from myxtts.config import Config, ModelConfig, differences
from myxtts.devices import Say
from myxtts.errors import UserError
from myxtts.languages import find_language
from myxtts.model_folder.files import (
    SETTINGS,
    VOCABULARY,
    ModelFolder,
    open_model_folder,
    settings_text,
)
from myxtts.stages.tuning import tokens_of
from myxtts.text import (
    Tokenizer,
    Vocabulary,
    described,
    extend_vocabulary,
    read_vocabulary,
    train_vocabulary,
    write_vocabulary,
)
from myxtts.text.vocabulary import START, STOP

START_FILE = "start.json"
"""In a run's folder: the sums of the files that its weights were read from."""
NOT_OF_THE_WEIGHTS = ("model.size", "model.discriminator", "model.gpt.text_")
MOST_SHOWN = 8
ADVICE = 2000
"""Tokens for one more language: 5000 were found worse by others who tried (docs/fine-tuning.md)."""


class Lacking(NamedTuple):
    """What texts need and a vocabulary has not."""

    tags: list[str]
    characters: Counter[str]

    @property
    def tokens(self) -> int:
        """Tokens that are needed before any merge."""
        return len(self.tags) + len(self.characters)

    def __str__(self) -> str:
        common = self.characters.most_common(MOST_SHOWN)
        named = [f"{described(character)} {count}×" for character, count in common]
        more = len(self.characters) - len(named)
        tags = [f"no tag {' '.join(self.tags)}"] if self.tags else []
        rest = f" and {more} more" if more else ""
        return " and ".join([*tags, *([f"no token for {', '.join(named)}{rest}"] if named else [])])


def adopted(config: Config, say: Say) -> Config:
    """With the network of the model that is gone on from; raises where another is asked for."""
    start = config.training.start_from
    if start is None:
        if config.text.new_tokens and config.text.vocabulary is None:
            raise UserError(
                "text.new_tokens adds to a vocabulary, and none is named",
                "name a model's folder (--start-from FOLDER), or leave text.new_tokens out",
            )
        return config
    own = config.model.discriminator
    model = open_model_folder(start).model.model_copy(update={"discriminator": own})
    asked = {_key(line) for line in differences(Config(), config)}
    unlike = [
        line
        for line in differences(Config(model=model), Config(model=config.model))
        if _key(line) in asked and not line.startswith(NOT_OF_THE_WEIGHTS)
    ]
    if unlike:
        raise UserError(
            f"the model in {start} is of another size: {'; '.join(unlike[:MOST_SHOWN])}",
            "leave the settings under `model` out: a model brings its own",
        )
    say(f"model: the settings of {start}")
    return config.model_copy(update={"model": model})


def with_vocabulary(config: Config, part: Part, model: Path, say: Say) -> tuple[Config, Tokenizer]:
    """The run's own vocabulary, made once, and the network's size that goes with it."""
    file = model / VOCABULARY
    if not file.is_file():
        write_vocabulary(_vocabulary(config, part, say), file)
    vocabulary = read_vocabulary(file)
    settled = sized(config.model, vocabulary, _tokens_at_start(config))
    replace_file(model / SETTINGS, settings_text(settled).encode())
    config = config.model_copy(update={"model": settled})
    return config, Tokenizer(vocabulary)


def sized(model: ModelConfig, vocabulary: Vocabulary, least: int = 0) -> ModelConfig:
    """The network's settings with the text table that a vocabulary needs, or a larger one."""
    gpt = model.gpt.model_copy(
        update={
            "text_tokens": max(len(vocabulary), least),
            "text_start": vocabulary.tokens[START],
            "text_stop": vocabulary.tokens[STOP],
        }
    )
    return ModelConfig(**{**dict(model), "gpt": gpt})


def lacking(vocabulary: Vocabulary, texts: Iterable[tuple[str, str]]) -> Lacking:
    """Tags and characters of cleaned texts that have no token, the characters counted."""
    languages: set[str] = set()
    characters: Counter[str] = Counter()
    for text, language in texts:
        languages.add(language)
        characters.update(text)
    tags = {find_language(code).vocabulary_tag for code in languages}
    known = {token for token in vocabulary.tokens if len(token) == 1} | {" "}
    for character in known & characters.keys():
        del characters[character]
    return Lacking(sorted(tags - vocabulary.tokens.keys()), characters)


def check_start(file: Path, run: Path) -> None:
    """Weights that stay are read from there whenever the run goes on: it must be the same file."""
    record = run / START_FILE
    sums = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    with file.open("rb") as handle:
        found = hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    if sums.setdefault(file.name, found) != found:
        raise UserError(
            f"{file} is not the file that {run.name} began from: its sum is {found}, "
            f"it was {sums[file.name]}",
            "put that file back, or begin another run: leave --resume out",
        )
    beside = record.with_name(f".{START_FILE}.partial-{os.getpid()}")
    beside.write_text(json.dumps(sums), encoding="utf-8")
    beside.rename(record)


def _vocabulary(config: Config, part: Part, say: Say) -> Vocabulary:
    """The one that is named or that the model has, extended if need be; else one of the texts."""
    start = config.training.start_from
    folder = open_model_folder(start) if start else None
    given = config.text.vocabulary or (folder.vocabulary if folder else None)
    if given is None:
        texts, languages = zip(*part.texts(config.text), strict=True)
        tags = sorted(set(languages))
        vocabulary = train_vocabulary(texts, config.text.vocabulary_size, tags, at_most=True)
        say(f"vocabulary: {len(vocabulary)} tokens from {len(texts)} texts")
        return vocabulary
    vocabulary = read_vocabulary(given)
    if folder:
        _check_ids(vocabulary, folder)
    if config.training.stage != "dvae":  # The codec reads no text.
        vocabulary = _extended(vocabulary, part, config, say)
        _check_grown(vocabulary, config)
    return vocabulary


def _extended(old: Vocabulary, part: Part, config: Config, say: Say) -> Vocabulary:
    """With the tokens that the settings allow; raises if the clips need others still."""
    count, own = config.text.new_tokens, list(part.own.texts(config.text))
    missing = lacking(old, own if count else part.texts(config.text))
    if count < missing.tokens:
        raise UserError(
            f"{old.origin} has {missing}",
            f"let it grow: text.new_tokens={max(ADVICE, missing.tokens)} (docs/fine-tuning.md); or "
            f"leave those clips out: text.vocabulary={old.origin}, which prepares the data again",
        )
    if not count:
        return old
    texts, languages = zip(*own, strict=True)
    size = len(old) + count
    grown = extend_vocabulary(old, texts, size, sorted(set(languages)), at_most=True)
    if (still := lacking(grown, part.texts(config.text))).tokens:
        raise UserError(
            f"with {len(grown) - len(old)} tokens more, {old.origin} has {still} in the clips of "
            "data.replay",
            "replay clips of languages that the model knows",
        )
    say(f"vocabulary: {len(grown) - len(old)} tokens added to {len(old)}")
    return grown


def _check_ids(vocabulary: Vocabulary, folder: ModelFolder) -> None:
    """A token that the model knows must keep the id of the vectors that it learned for it."""
    old = read_vocabulary(folder.vocabulary)
    moved = [
        token for token, number in old.tokens.items() if vocabulary.tokens.get(token) != number
    ]
    if moved:
        named = ", ".join(map(repr, moved[:MOST_SHOWN]))
        raise UserError(
            f"{vocabulary.origin} has another id, or none, for {len(moved)} tokens of the model in "
            f"{folder.path}: {named}",
            "leave text.vocabulary out, or name one that extends the model's own",
        )


def _check_grown(vocabulary: Vocabulary, config: Config) -> None:
    """Only the GPT's stage can give new tokens their weights."""
    tokens, stage = _tokens_at_start(config), config.training.stage
    if tokens and len(vocabulary) > tokens and stage not in (None, "gpt"):
        raise UserError(
            f"the vocabulary grows to {len(vocabulary)} tokens, the GPT has {tokens}, "
            f"and the stage {stage} does not change it",
            "train the GPT with these clips first: --stage gpt",
        )


def _tokens_at_start(config: Config) -> int:
    """How many tokens the model that is gone on from has weights for; 0 without one."""
    start = config.training.start_from
    return tokens_of(open_model_folder(start).weights("gpt")) if start else 0


def _key(line: str) -> str:
    return line.partition(":")[0]
