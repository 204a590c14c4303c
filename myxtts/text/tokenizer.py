"""Clean text into ids and back: the language's tag, then byte-pair tokens, [SPACE] for a space."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

import tokenizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Whitespace

from myxtts.errors import UserError
from myxtts.languages import find_language
from myxtts.text.vocabulary import (
    SPACE,
    START,
    STOP,
    UNKNOWN,
    Vocabulary,
    read_vocabulary,
)


class Tokenizer:
    """Encodes under one vocabulary; `start_id` and `stop_id` are for the GPT to add."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        ids = vocabulary.tokens
        self.start_id, self.stop_id = ids[START], ids[STOP]
        self.unknown_id, self.space_id = ids[UNKNOWN], ids[SPACE]
        self._token_of = {number: token for token, number in ids.items()}
        self._alphabet = {token for token in ids if len(token) == 1} | {" "}
        model = BPE(vocab=dict(ids), merges=list(vocabulary.merges), unk_token=UNKNOWN)
        # It knows no special tokens, so that "[STOP]" in a transcript stays six characters.
        self._bpe = tokenizers.Tokenizer(model)
        self._bpe.pre_tokenizer = Whitespace()

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """The tokenizer of a vocab.json."""
        return cls(read_vocabulary(path))

    def __len__(self) -> int:
        return len(self.vocabulary)

    def tag_id(self, language: str) -> int:
        """The id that opens a text in this language."""
        facts = find_language(language)
        tag = facts.vocabulary_tag
        if tag not in self.vocabulary.tokens:
            tags = self.vocabulary.tags
            near = get_close_matches(tag, tags, n=1, cutoff=0)
            nearest = f"the nearest is {near[0]}; " if near else ""
            raise UserError(
                f"{self.vocabulary.origin} has no tag {tag} for {facts.name}",
                f"{nearest}there are {' '.join(tags) or 'none'}; extend_vocabulary adds one",
            )
        return self.vocabulary.tokens[tag]

    def encode(self, text: str, language: str) -> list[int]:
        """Ids of cleaned text, without [START] and [STOP]."""
        words = text.split(" ")
        encoded = self._bpe.encode(words, is_pretokenized=True)
        ids, before = [self.tag_id(language)], 0
        for token, word in zip(encoded.ids, encoded.word_ids, strict=True):
            place = before if word is None else word
            ids += [self.space_id] * (place - before)
            ids.append(token)
            before = place
        return ids + [self.space_id] * (len(words) - 1 - before)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, tag included; [STOP] and [UNK] leave nothing."""
        silent = {self.stop_id, self.unknown_id}
        tokens = [self._token_of[number] for number in ids if number not in silent]
        return "".join(tokens).replace(SPACE, " ")

    def unknown(self, text: str) -> list[tuple[int, str]]:
        """Place and character of all that the vocabulary has no token for."""
        return [(at, char) for at, char in enumerate(text) if char not in self._alphabet]
