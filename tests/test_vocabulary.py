"""The tokenizer and its vocabularies: read, made, extended, and refused with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.trainers import BpeTrainer

from myxtts.errors import UserError
from myxtts.text import (
    Tokenizer,
    audit,
    clean_text,
    extend_vocabulary,
    read_vocabulary,
    train_vocabulary,
    write_vocabulary,
)

FOLDER = Path(__file__).parent
VOCAB = FOLDER / "golden/tiny_vocab.json"
GOLDEN = json.loads((FOLDER / "golden/text.json").read_text(encoding="utf-8"))
ROWS = GOLDEN["rows"]
CORPUS = [row["cleaned"] for row in ROWS] * 2 + (FOLDER / "test_persian.py").read_text(
    encoding="utf-8"
).splitlines()
PERSIAN = [clean_text(t, "fa") for t in ("من کتاب‌ها را می‌خوانم.", "او پنجره را می‌بندد؟")] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(VOCAB)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['lang']}: {row['raw']}")
def test_ids_and_decoded_text_are_the_references(row: dict[str, Any], tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(row["cleaned"], row["lang"])
    assert ids == row["ids"]
    assert tokenizer.decode([*ids, tokenizer.stop_id, tokenizer.unknown_id]) == row["decoded"]


def test_start_and_stop_are_read_from_the_file(tokenizer: Tokenizer) -> None:
    found = (tokenizer.start_id, tokenizer.stop_id, len(tokenizer))
    assert found == (GOLDEN["start_id"], GOLDEN["stop_id"], GOLDEN["number_of_tokens"])


def test_special_tokens_written_in_a_transcript_stay_characters(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a [en] [STOP]", "en")
    assert ids.count(tokenizer.stop_id) == 0
    assert ids.count(tokenizer.tag_id("en")) == 1


def test_every_space_is_a_token(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(" a  b ", "en")
    assert tokenizer.decode(ids) == "[en] a  b "
    assert tokenizer.decode(tokenizer.encode("", "en")) == "[en]"


def test_unknown_characters_have_counts_and_places(tokenizer: Tokenizer) -> None:
    texts = [("a☃b☃", "en"), ("plain", "en"), ("ژ☃", "en")]
    found = audit(tokenizer, texts, limit=5)
    assert [(u.character, u.count, u.places) for u in found.unknown.values()] == [
        ("☃", 3, [(0, 1), (0, 3), (2, 1)]),
        ("ژ", 1, [(2, 0)]),
    ]
    assert str(found.unknown["☃"]) == "☃ U+2603 SNOWMAN: 3×"


def test_texts_over_the_token_limit_are_named(tokenizer: Tokenizer) -> None:
    found = audit(tokenizer, [("a a a", "en"), ("a", "en")], limit=5)
    assert (found.lengths, found.too_long) == ([6, 2], [0])


def test_missing_tag_names_the_nearest_and_the_ones_there_are(tokenizer: Tokenizer) -> None:
    with pytest.raises(UserError, match=r"has no tag \[fa\] for Persian") as caught:
        tokenizer.encode("سلام", "fa")
    assert "the nearest is [" in caught.value.remedy
    assert "[zh-cn]" in caught.value.remedy


def broken(**changes: object) -> str:
    return json.dumps(json.loads(VOCAB.read_text(encoding="utf-8")) | changes)


MODEL = json.loads(VOCAB.read_text(encoding="utf-8"))["model"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is no vocabulary of XTTS"),
        ("{}", "it has no 'model'"),
        (broken(model=MODEL | {"type": "Unigram"}), "Unigram, not BPE"),
        (broken(normalizer={"type": "NFC"}), "it has a normalizer"),
        (broken(pre_tokenizer=None), "pre_tokenizer is not Whitespace"),
        (broken(model=MODEL | {"vocab": {"a": 0}}), "two tokens have the id 0"),
        (broken(model=MODEL | {"vocab": {"a": "x"}}), "no whole number"),
        (broken(model=MODEL | {"merges": [["q", "ж"]]}), "needs a token 'ж'"),
        (broken(added_tokens=[], model={"vocab": {"a": 0}, "merges": []}), "[STOP], [UNK]"),
    ],
)
def test_unusable_file_is_refused_with_the_reason(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "vocab.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_vocabulary(path)
    assert said in caught.value.problem
    assert str(path) in caught.value.problem


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.json: No such file"):
        Tokenizer.load(tmp_path / "none.json")


def test_merges_written_as_one_text_are_read(tmp_path: Path) -> None:
    merges = [" ".join(pair) for pair in MODEL["merges"]]
    path = tmp_path / "old.json"
    path.write_text(broken(model=MODEL | {"merges": merges}), encoding="utf-8")
    assert read_vocabulary(path).merges == read_vocabulary(VOCAB).merges


def test_a_new_vocabulary_equals_the_one_that_the_library_trains() -> None:
    ours = train_vocabulary(CORPUS, 600, ["fa"])
    library = tokenizers.Tokenizer(BPE(unk_token="[UNK]"))  # noqa: S106
    library.pre_tokenizer = Whitespace()
    special = ["[STOP]", "[UNK]", "[SPACE]", "[START]", "[fa]"]
    trainer = BpeTrainer(
        vocab_size=600, min_frequency=2, special_tokens=special, show_progress=False
    )
    library.train_from_iterator([word for text in CORPUS for word in text.split()], trainer)
    model = json.loads(library.to_str())["model"]
    assert dict(ours.tokens) == model["vocab"]
    assert [list(pair) for pair in ours.merges] == model["merges"]


def test_the_order_of_the_texts_does_not_matter() -> None:
    shuffled = sorted(CORPUS, key=lambda text: text[::-1])
    one, other = (train_vocabulary(texts, 500, ["fa", "en"]) for texts in (CORPUS, shuffled))
    assert (one.tokens, one.merges) == (other.tokens, other.merges)


def test_special_ids_are_those_of_the_release_and_the_file_is_read_by_the_library(
    tmp_path: Path,
) -> None:
    path = tmp_path / "vocab.json"
    write_vocabulary(train_vocabulary(CORPUS, 500, ["zh", "fa"]), path)
    again, library = read_vocabulary(path), tokenizers.Tokenizer.from_file(str(path))
    wanted = ["[STOP]", "[UNK]", "[SPACE]", "[START]", "[zh-cn]", "[fa]"]
    assert [library.id_to_token(number) for number in range(6)] == wanted == list(again.special)
    text = "کتاب‌ها را می‌خوانم"
    ids = Tokenizer(again).encode(text, "fa")
    assert ids == library.encode("[fa]" + text.replace(" ", "[SPACE]")).ids


def test_extending_keeps_every_old_id_and_appends(tokenizer: Tokenizer) -> None:
    old = tokenizer.vocabulary
    longer = extend_vocabulary(old, PERSIAN, 425, ["fa"])
    assert len(longer) == 425
    assert {token: longer.tokens[token] for token in old.tokens} == old.tokens
    assert longer.merges[: len(old.merges)] == old.merges
    assert longer.tokens["[fa]"] == len(old)
    assert Tokenizer(longer).unknown(" ".join(PERSIAN)) == []


def test_extended_vocabulary_encodes_old_languages_as_before(tokenizer: Tokenizer) -> None:
    longer = Tokenizer(extend_vocabulary(tokenizer.vocabulary, PERSIAN, 425, ["fa"]))
    # Arabic shares its letters with Persian, so its tokens may grow longer.
    rows = [row for row in ROWS if row["lang"] != "ar"]
    assert [longer.encode(row["cleaned"], row["lang"]) for row in rows] == [
        row["ids"] for row in rows
    ]
    before, after = (len(t.encode(PERSIAN[0], "ar")) for t in (tokenizer, longer))
    assert after < before


@pytest.mark.parametrize(
    ("texts", "size", "said"),
    [
        (["a b"], 3, "does not hold the 7 tokens"),
        (["aa bb"], 900, "give a vocabulary of 7, not 900"),
        ([" "], 100, "there is no text"),
    ],
)
def test_impossible_size_names_the_possible_one(texts: list[str], size: int, said: str) -> None:
    with pytest.raises(UserError, match=said):
        train_vocabulary(texts, size, ["en"])
