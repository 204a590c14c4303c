"""Long text in pieces that the model can speak."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.errors import UserError
from myxtts.languages import language_codes
from myxtts.text import split_sentences

SPACES = r"\s+"


@pytest.mark.parametrize(
    ("language", "text", "limit", "pieces"),
    [
        ("en", "One. Two! Three? Four", 10, ["One. Two!", "Three?", "Four"]),
        ("en", "One. Two! Three? Four", 21, ["One. Two! Three? Four"]),
        ("en", "Ask Dr. Lee. Go now.", 15, ["Ask Dr. Lee.", "Go now."]),
        ("en", "See e.g. this. Then go.", 16, ["See e.g. this.", "Then go."]),
        ("en", "By J. Smith. It ends.", 14, ["By J. Smith.", "It ends."]),
        ("en", 'He said "no." She left.', 15, ['He said "no."', "She left."]),
        ("en", "It is 3.5 m. Long it is", 15, ["It is 3.5 m.", "Long it is"]),
        ("de", "Am 3. Mai war es. Gut so.", 18, ["Am 3. Mai war es.", "Gut so."]),
        ("fa", "سلام. خوبی؟ بله، من خوبم.", 12, ["سلام. خوبی؟", "بله،", "من خوبم."]),
        ("ar", "مرحبا؟ نعم.", 8, ["مرحبا؟", "نعم."]),
        ("zh", "你好。世界！再见？", 4, ["你好。", "世界！", "再见？"]),
        ("ja", "はい。「いいえ。」そう", 7, ["はい。", "「いいえ。」", "そう"]),
        ("hi", "नमस्ते। कैसे हो।", 9, ["नमस्ते।", "कैसे हो।"]),
        ("en", "one, two three four", 12, ["one,", "two three", "four"]),
        ("en", "abcdefgh", 3, ["abc", "def", "gh"]),
        ("en", "first line\nsecond line", 12, ["first line", "second line"]),
        ("en", "  ", 5, []),
    ],
)
def test_text_is_cut_where_a_reader_breathes(
    language: str, text: str, limit: int, pieces: list[str]
) -> None:
    assert split_sentences(text, language, limit) == pieces


TEXTS = st.text(alphabet=[*'ab ,.!?؟。、\n"”)e\u0301سَ\u200c1-'], max_size=80) | st.text(max_size=60)


@settings(max_examples=300, deadline=None, database=None)
@given(text=TEXTS, limit=st.integers(1, 30), language=st.sampled_from(language_codes()))
def test_nothing_is_lost_and_no_piece_is_too_long(text: str, limit: int, language: str) -> None:
    pieces = split_sentences(text, language, limit)
    assert re.sub(SPACES, "", "".join(pieces)) == re.sub(SPACES, "", text)
    assert all(0 < len(piece) <= limit for piece in pieces)


def test_the_limit_is_the_languages_own_unless_one_is_given() -> None:
    text = "hello there, " * 60
    assert max(map(len, split_sentences(text, "en"))) in range(200, 251)
    assert max(map(len, split_sentences(text, "zh-cn"))) in range(60, 83)


def test_a_letter_keeps_its_marks() -> None:
    assert split_sentences("e\u0301" * 4, "en", 3) == ["e\u0301"] * 4


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(UserError, match="limit of 0 characters"):
        split_sentences("text", "en", 0)
