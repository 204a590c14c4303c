"""The tokens and merges of a vocab.json, as the released XTTS-v2 has them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from myxtts.errors import UserError

STOP, UNKNOWN, SPACE, START = SPECIAL = ("[STOP]", "[UNK]", "[SPACE]", "[START]")
_REMEDY = "give the vocab.json of XTTS-v2, or one that train_vocabulary wrote"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Every token with its id, the merges in the order they apply, and the special tokens."""

    tokens: Mapping[str, int]
    merges: Sequence[tuple[str, str]]
    special: Sequence[str]
    origin: str = "a vocabulary made here"
    """What error messages call it."""

    def __len__(self) -> int:
        return max(self.tokens.values()) + 1

    @property
    def tags(self) -> tuple[str, ...]:
        """The languages' tags, such as [en]."""
        return tuple(token for token in self.special if token not in SPECIAL)


def read_vocabulary(path: Path) -> Vocabulary:
    """Reads a `tokenizers` file, and refuses one that would be read in another way than ours."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or 'cannot be read'}", _REMEDY) from None
    except (UnicodeDecodeError, RecursionError):
        raise UserError(f"{path} is not JSON", _REMEDY) from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno} is not JSON: {error.msg}", _REMEDY) from None
    try:
        tokens, merges, special = _parts(content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is no vocabulary of XTTS: {_fault(error)}", _REMEDY) from None
    if missing := [token for token in SPECIAL if token not in tokens]:
        raise UserError(f"{path} has no special token {', '.join(missing)}", _REMEDY)
    return Vocabulary(tokens, merges, special, str(path))


def write_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """Writes the released format, which `tokenizers` reads too."""
    tokens = dict(sorted(vocabulary.tokens.items(), key=lambda item: item[1]))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    special = sorted(vocabulary.special, key=tokens.__getitem__)
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": tokens[token], "content": token, **flags, "special": True} for token in special
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": UNKNOWN,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": tokens,
            "merges": [list(pair) for pair in vocabulary.merges],
        },
    }
    # Beside its place first: a killed run leaves no half of one.
    beside = path.with_name(f".{path.name}.partial")
    beside.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")
    beside.replace(path)


def _parts(content: Any) -> tuple[dict[str, int], list[tuple[str, str]], list[str]]:
    model = content["model"]
    if model.get("type", "BPE") != "BPE":
        raise ValueError(f"its model is {model['type']}, not BPE")
    if content.get("normalizer") is not None:
        raise ValueError("it has a normalizer, which XTTS has not")
    if (content.get("pre_tokenizer") or {}).get("type") != "Whitespace":
        raise ValueError("its pre_tokenizer is not Whitespace")
    added = {token["content"]: token["id"] for token in content["added_tokens"]}
    tokens = {**model["vocab"], **added}
    _check_ids(tokens.values())
    special = [token["content"] for token in content["added_tokens"]]
    return tokens, [_pair(merge, tokens) for merge in model["merges"]], special


def _check_ids(ids: Iterable[object]) -> None:
    numbers = [number for number in ids if type(number) is int and 0 <= number < 2**31]
    if len(numbers) < len(list(ids)):
        raise ValueError("a token's id is no whole number of 0 or more")
    for before, after in pairwise(sorted(numbers)):
        if before == after:
            raise ValueError(f"two tokens have the id {after}")


def _pair(merge: Any, tokens: Mapping[str, int]) -> tuple[str, str]:
    """Reads ["a", "b"], and "a b" of older files."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    for token in (left, right, left + right):
        if token not in tokens:
            raise ValueError(f"the merge of {left!r} and {right!r} needs a token {token!r}")
    return left, right


def _fault(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
