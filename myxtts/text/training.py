"""Vocabularies from the user's own corpus: byte-pair merges, counted the same way every time."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Whitespace

from myxtts.errors import UserError
from myxtts.languages import find_language
from myxtts.text.vocabulary import SPECIAL, UNKNOWN, Vocabulary

Pair = tuple[str, str]
RAREST = 2  # A pair seen once says nothing of the language.


def train_vocabulary(
    texts: Iterable[str], size: int, languages: Sequence[str], *, at_most: bool = False
) -> Vocabulary:
    """A vocabulary of cleaned texts; the same texts in any order give the same one."""
    tags = [find_language(code).vocabulary_tag for code in languages]
    special = list(dict.fromkeys([*SPECIAL, *tags]))
    empty = Vocabulary({token: number for number, token in enumerate(special)}, (), special)
    return _grow(empty, texts, size, at_most=at_most)


def extend_vocabulary(
    old: Vocabulary,
    texts: Iterable[str],
    size: int,
    languages: Sequence[str] = (),
    *,
    at_most: bool = False,
) -> Vocabulary:
    """Appends tags, characters and merges for new texts; every old token keeps its id.

    Merges are tried in their order, so the old ones still apply first; a new one may
    lengthen the tokens of an old language that shares the script.
    """
    tokens, special = _by_id(old), list(old.special)
    for code in languages:
        tag = find_language(code).vocabulary_tag
        if tag not in tokens:
            tokens[tag] = _next_id(tokens)
            special.append(tag)
    return _grow(Vocabulary(tokens, old.merges, special), texts, size, at_most=at_most)


def _grow(
    start: Vocabulary, texts: Iterable[str], size: int, *, at_most: bool = False
) -> Vocabulary:
    words = _words(texts)
    if not words:
        raise UserError("there is no text to make a vocabulary of", "give cleaned transcripts")
    tokens, merges = _by_id(start), list(start.merges)
    for character in sorted({character for word in words for character in word} - tokens.keys()):
        tokens[character] = _next_id(tokens)
    if size < (least := _next_id(tokens)):
        raise UserError(
            f"a vocabulary of {size} does not hold the {least} tokens there are before any merge",
            f"write a size of {least} or more",
        )
    model = BPE(vocab=tokens, merges=merges, unk_token=UNKNOWN)
    corpus = _Corpus({word: [t.value for t in model.tokenize(word)] for word in words}, words)
    _learn(corpus, tokens, merges, size)
    if (most := _next_id(tokens)) < size and not at_most:
        raise UserError(
            f"the texts give a vocabulary of {most}, not {size}",
            f"write a size of {most} or less, or give more text",
        )
    return Vocabulary(tokens, merges, start.special)


def _learn(corpus: "_Corpus", tokens: dict[str, int], merges: list[Pair], size: int) -> None:
    """Merges the commonest pair again and again; of equals the one with the lower ids."""
    known = set(merges)
    queue = [(-count, tokens[a], tokens[b], (a, b)) for (a, b), count in corpus.counts.items()]
    heapq.heapify(queue)
    while queue and _next_id(tokens) < size:
        negative, _, _, pair = heapq.heappop(queue)
        if -negative != corpus.counts[pair] or pair in known:
            continue  # Counted again since, and so queued again.
        if -negative < RAREST:
            return
        merged = "".join(pair)
        tokens.setdefault(merged, _next_id(tokens))
        merges.append(pair)
        known.add(pair)
        for a, b in corpus.merge(pair, merged):
            heapq.heappush(queue, (-corpus.counts[a, b], tokens[a], tokens[b], (a, b)))


def _by_id(vocabulary: Vocabulary) -> dict[str, int]:
    return dict(sorted(vocabulary.tokens.items(), key=lambda item: item[1]))


def _next_id(tokens: dict[str, int]) -> int:
    # Tokens stand by id. A file may have gaps, which stay, as the network has rows for them.
    return next(reversed(tokens.values())) + 1


def _words(texts: Iterable[str]) -> Counter[str]:
    whole: Counter[str] = Counter()
    for text in texts:
        whole.update(text.split())
    words: Counter[str] = Counter()
    split = Whitespace()
    for word, count in whole.items():
        for piece, _ in split.pre_tokenize_str(word):
            words[piece] += count
    return words


class _Corpus:
    """Words in pieces, and for every pair of neighbours how often and in which words it is."""

    def __init__(self, pieces: dict[str, list[str]], counts: Counter[str]) -> None:
        self.words = pieces
        self.weights = counts
        self.counts: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, set[str]] = defaultdict(set)
        for word in pieces:
            self._count(word, 1)

    def merge(self, pair: Pair, merged: str) -> set[Pair]:
        """Joins the pair wherever it is; the pairs whose counts have changed."""
        changed: set[Pair] = set()
        for word in self.places.pop(pair):
            changed.update(self._count(word, -1))
            self.words[word] = _joined(self.words[word], pair, merged)
            changed.update(self._count(word, 1))
        return changed - {pair}

    def _count(self, word: str, sign: int) -> set[Pair]:
        """Adds a word's pairs to the counts, or takes them away."""
        pieces = self.words[word]
        pairs = set()
        for pair in pairwise(pieces):
            self.counts[pair] += sign * self.weights[word]
            if sign > 0:
                self.places[pair].add(word)
            pairs.add(pair)
        return pairs


def _joined(pieces: list[str], pair: Pair, merged: str) -> list[str]:
    out: list[str] = []
    place = 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            out.append(merged)
            place += 2
        else:
            out.append(pieces[place])
            place += 1
    return out
