"""Cleaning for every language, against the reference's own output and against any text."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts import languages
from myxtts.config import TextConfig
from myxtts.errors import UserError
from myxtts.languages import find_language, language_codes
from myxtts.text import clean, clean_text

GOLDEN = json.loads((Path(__file__).parent / "golden/text.json").read_text(encoding="utf-8"))
# Japanese needs an extra with a dictionary, which the tests do without.
CODES = [code for code in language_codes() if code != "ja"]

# Pieces that the rules of some language react to.
PIECES = [*"aAoEiO1203.,$£€%&@#°\"'!? -/:+_éİΣß\u0301\u200d\u200e\ud800", "Dr.", "1.", "12,5", "st"]
TEXTS = st.text(max_size=25) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=lambda row: f"{row['lang']}: {row['raw']}")
def test_cleaned_text_is_the_references_to_the_letter(row: dict[str, Any]) -> None:
    assert clean_text(row["raw"], row["lang"]) == row["cleaned"]


def test_limits_are_the_references() -> None:
    limits = {code: find_language(code).limit for code in GOLDEN["char_limits"]}
    assert limits == GOLDEN["char_limits"]


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=40, deadline=None, database=None)
@given(text=TEXTS)
def test_no_text_stops_a_cleaner(code: str, text: str) -> None:
    cleaned = clean_text(text, code)
    assert cleaned == cleaned.strip()
    assert "\x00" not in cleaned
    assert cleaned.encode().decode() == cleaned


# Pinyin has digits, which a second pass would read; German number words keep their capitals.
@pytest.mark.parametrize("code", [code for code in CODES if code not in {"zh", "de"}])
@settings(max_examples=40, deadline=None, database=None)
@given(text=TEXTS)
def test_cleaning_twice_equals_once(code: str, text: str) -> None:
    once = clean_text(text, code)
    assert clean_text(once, code) == once


@settings(max_examples=60, deadline=None, database=None)
@given(text=TEXTS)
def test_german_differs_on_a_second_pass_in_capitals_only(text: str) -> None:
    once = clean_text(text, "de")
    assert clean_text(once, "de") == once.lower()


@pytest.mark.parametrize("code", CODES)
def test_endless_digits_are_read_without_delay(code: str) -> None:
    assert not re.search("[0-9]{2}", clean_text("7" * 30_000, code))


def test_invisible_characters_and_pictures_are_dropped_and_counted() -> None:
    cleaned = clean(
        "\ufeffhe\u200ello \u202b\u2067wor\x00ld\u2069\u202c 😀👍🏽 a\u00a0b\u2003c", "en"
    )
    assert cleaned.text == "hello world a b c"
    assert cleaned.dropped["😀"] == 1
    assert {"\ufeff", "\x00", "\u200e", "\u202b", "\u2067", "\U0001f3fd"} <= cleaned.dropped.keys()


def test_letters_and_marks_are_composed() -> None:
    assert clean_text("cafe\u0301", "fr") == "café"
    assert clean_text("가".encode().decode(), "ko") == clean_text("\u1100\u1161", "ko") == "ga"


@pytest.mark.parametrize(
    ("code", "text", "cleaned"),
    [
        ("hi", "१२५ और 1,25,000 लोग", "एक सौ पच्चीस और एक लाख पच्चीस हज़ार लोग"),
        ("hi", "3.05 & 2nd, $20", "तीन दशमलव शून्य पाँच और दूसरा, बीस डॉलर"),
        ("hi", "99 7th", "निन्यानवे सातवाँ"),
        ("cs", "21. prosince 1. máje", "dvacátý první prosince první máje"),
        (
            "cs",
            "1989. 2000. 345.",
            "tisíc devítistý osmdesátý devátý dva tisícetý třístý čtyřicátý pátý",
        ),
        ("ar", "٢٠ كتابا", "عشرون كتابا"),
        ("ar", "$20", "عشرون دولار"),
        ("en", "Mrs. Lee", "misess lee"),
        ("hu", "1,2345", "egy, kettő három négy öt"),
        ("tr", "İSTANBUL", "istanbul"),
    ],
)
def test_gaps_of_the_reference_are_closed(code: str, text: str, cleaned: str) -> None:
    assert clean_text(text, code) == cleaned


@pytest.mark.parametrize(
    ("text", "pinyin"),
    [
        ("200个", "liang3bai3ge4"),
        ("20000个", "liang3wan4ge4"),
        ("2024年", "er4ling2er4si4nian2"),
        ("2024-05-13", "er4ling2er4si4nian2wu3yue4shi2san1ri4"),
        ("105", "yi4bai3ling2wu3"),
        ("13800138000", "yi1san1ba1ling2ling2yi1san1ba1ling2ling2ling2"),
        ("-5度", "fu4wu3du4"),
        ("3/4", "si4fen1zhi1san1"),
        ("50%", "bai3fen1zhi1wu3shi2"),
        ("￥20", "er4shi2yuan2"),
        ("12:05", "shi2er4dian3ling2wu3fen1"),
        ("3~5", "san1dao4wu3"),
    ],
)
def test_chinese_numbers_are_read_as_they_are_said(text: str, pinyin: str) -> None:
    assert clean_text(text, "zh-cn") == pinyin


@pytest.mark.parametrize(
    ("hangul", "latin"),
    [("한국어", "hangug-eo"), ("번째", "beon-jjae"), ("값이", "gabs-i"), ("의사 ㅋ", "uisa ㅋ")],
)
def test_korean_syllables_that_could_be_read_otherwise_are_parted(hangul: str, latin: str) -> None:
    assert clean_text(hangul, "ko") == latin


def test_japanese_without_its_extra_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cutlet", None)
    find_language("ja").clean.__globals__["_romaniser"].cache_clear()  # type: ignore[union-attr]
    with pytest.raises(UserError, match="Japanese needs cutlet") as caught:
        clean_text("今日", "ja")
    assert caught.value.remedy == 'pip install "myxtts[ja]"'


def test_every_language_file_names_its_own_code() -> None:
    assert {code: find_language(code).code for code in language_codes()} == {
        code: code for code in language_codes()
    }
    assert len(language_codes()) == 18


SWEDISH = """
from myxtts.languages import Language
LANGUAGE = Language(code="sv", name="Swedish", limit=250, symbols={"&": "och"},
                    abbreviations={"dr.": "doktor"}, ordinal_endings=(":a", ":e"))
"""


def test_a_language_is_added_by_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sv.py").write_text(SWEDISH, encoding="utf-8")
    monkeypatch.setattr(languages, "__path__", [*languages.__path__, str(tmp_path)])
    assert "sv" in language_codes()
    assert clean_text("Dr. Åberg & 12:e", "sv-SE") == "doktor åberg och tolfte"


def test_a_region_is_no_part_of_a_language() -> None:
    assert find_language("zh-cn") is find_language("zh") is find_language(" ZH_TW")


def test_unknown_language_names_the_nearest_and_all() -> None:
    with pytest.raises(UserError, match="no language 'eng'") as caught:
        find_language("eng")
    assert "did you mean en?" in caught.value.remedy
    assert "ar, cs, de" in caught.value.remedy


PLUG_IN = """
def add_vowels(text, language):
    return text.replace("سلام", "سَلام") if language == "fa" else text
def fail(text, language):
    raise KeyError("kasre")
def number(text, language):
    return 7
def nothing(text, language):
    return " "
"""


@pytest.fixture
def vowels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"vowels_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(PLUG_IN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_plug_in_sees_the_cleaned_text_and_its_language(vowels: str) -> None:
    config = TextConfig(plug_in=f"{vowels}:add_vowels")
    assert clean_text("سلام ۲", "fa", config) == "سَلام دو"
    assert clean_text("سلام", "ar", config) == "سلام"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("fail", "raised KeyError: 'kasre'"),
        ("number", "returned '7', which is no text"),
        ("nothing", "which is no text"),
        ("absent", "has no function absent"),
    ],
)
def test_failing_plug_in_is_named_with_its_error(vowels: str, function: str, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        clean_text("سلام", "fa", TextConfig(plug_in=f"{vowels}:{function}"))
    assert function in caught.value.problem


def test_plug_in_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(UserError, match="importing no_such_module raised ModuleNotFoundError"):
        clean_text("سلام", "fa", TextConfig(plug_in="no_such_module:f"))
