"""The court: each rule refuses what it is for, says by how much, and lets good clips go."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import RATE, Floats, beside, ljspeech, prepared, refused, rules, save, speech

from myxtts.config import CourtConfig
from myxtts.decode import Measures
from myxtts.errors import UserError
from myxtts.prepare import CharacterSet
from myxtts.prepare.clip import REMEDIES, Clip, Record
from myxtts.prepare.court import Case, Court


def with_clip(data: Path, sound: Floats, text: str = "Sentence.", subtype: str = "FLOAT") -> Path:
    """A folder of good clips and one that is not, called x."""
    ljspeech(data, 3)
    save(data / "wavs" / "x.wav", sound, subtype=subtype)
    with (data / "metadata.csv").open("a") as file:
        file.write(f"x|{text}\n")
    return data


def cut(start: float, end: float) -> Floats:
    """A loud stretch with a pause inside, so that background and speech can be told apart."""
    sound = speech(2.0)
    return sound[int(start * RATE) : int(end * RATE)]


BAD: dict[str, tuple[Floats, str]] = {
    "empty": (np.zeros(0, np.float32), "0 samples"),
    "silent": (speech() * 0.003, "dB"),
    "clipped": (np.clip(speech() * 40, -1, 1), "% of the samples"),
    "not_finite": (
        np.where(np.arange(RATE) == 999, np.nan, speech()).astype(np.float32),
        "1 samples",
    ),
    "short": (speech(0.4), "0.400 s"),
    "long": (speech(11.7), "11.70 s"),
    "cut_start": (cut(0.18, 2.0), "dB"),
    "cut_end": (cut(0.0, 1.68), "dB"),
}


@pytest.mark.parametrize("rule", BAD)
def test_a_bad_recording_is_refused_by_its_rule_with_its_value(tmp_path: Path, rule: str) -> None:
    sound, measured = BAD[rule]
    manifest = prepared(with_clip(tmp_path / "data", sound))
    (row,) = refused(manifest.folder)
    assert (row["rule"], row["source"], row["list"], row["line"]) == (
        rule,
        "wavs/x.wav",
        "metadata.csv",
        "4",
    )
    assert measured in row["measured"]
    assert row["bound"]
    assert row["remedy"] == REMEDIES[rule]
    assert len(manifest.table) == 3


def test_infinite_samples_are_no_sound(tmp_path: Path) -> None:
    sound = speech()
    sound[7] = np.inf
    assert rules(prepared(with_clip(tmp_path / "data", sound)).folder) == {"not_finite": 1}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "empty_text"),
        ("… \u200b!", "empty_text"),
        ("a" * 401, "long_text"),
        ("a" * 90, "ratio"),
    ],
)
def test_a_bad_text_is_refused_by_its_rule(tmp_path: Path, text: str, rule: str) -> None:
    assert rules(prepared(with_clip(tmp_path / "data", speech(), text)).folder) == {rule: 1}


def test_a_rule_that_is_off_refuses_nothing(tmp_path: Path) -> None:
    data = with_clip(tmp_path / "data", speech(0.4))
    manifest = prepared(data, court=CourtConfig(off=("short",)))
    assert rules(manifest.folder) == {}
    assert len(manifest.table) == 4


def test_a_bound_is_a_setting(tmp_path: Path) -> None:
    data = with_clip(tmp_path / "data", speech(0.4))
    assert rules(prepared(data, court=CourtConfig(shortest_seconds=0.3)).folder) == {}


def test_characters_outside_the_vocabulary_are_counted(tmp_path: Path) -> None:
    known = CharacterSet(frozenset("Sentc0123456789. "))
    data = with_clip(tmp_path / "data", speech(), "Sentente ١٢١ €")
    (row,) = refused(prepared(data, vocabulary=known).folder)
    assert row["rule"] == "characters"
    assert row["measured"] == "١ (U+0661) x2, ٢ (U+0662) x1, € (U+20AC) x1"


def test_duplicates_are_told_by_what_they_repeat(tmp_path: Path) -> None:
    data = ljspeech(tmp_path / "data", 4)
    save(data / "wavs/same.wav", speech(0.6, 0))
    save(data / "wavs/other.wav", speech(0.6, 1))
    with (data / "metadata.csv").open("a") as file:
        file.write("same|Sentence 0.\nother|Another text.\nc0002|Sentence 2.\n")
    found = {(r["rule"], r["id"]): r["measured"] for r in refused(prepared(data).folder)}
    assert found == {
        ("texts_differ", "c0001"): "the same sound has another text",
        ("texts_differ", "other"): "the same sound has another text",
        ("duplicate_audio", "same"): "sounds as wavs/c0000.wav",
        ("duplicate_id", "c0002"): "c0002, as wavs/c0002.wav",
    }


def case(number: int, seconds: float, text: str = "x" * 30, language: str = "en") -> Case:
    record = Record(f"{number}.wav", text, id=str(number), language=language)
    levels = {"loudest_db": -10.0, "speech_db": -12.0, "floor_db": -60.0}
    got = Measures(number, samples=1, seconds=seconds, pcm_hash=str(number), **levels)  # type: ignore[arg-type]
    return Case(Clip(record, record.audio), got)


def judged(cases: list[Case], **settings: Any) -> list[str]:
    court = Court(CourtConfig(**settings), None)
    verdicts = court.judge(cases, court.survey(cases))
    return [refusal.rule if refusal else "" for _, refusal in verdicts]


def test_a_ratio_is_compared_with_its_own_language() -> None:
    # 15 characters per second in English, 5 in Japanese: usual there, and odd here.
    usual = [case(n, 2 + 0.002 * n) for n in range(60)]
    ja = [case(100 + n, 6 + 0.002 * n, language="ja") for n in range(60)]
    odd = [case(998, 7.0), case(999, 0.8)]
    assert judged(usual + ja + odd) == [""] * 120 + ["ratio", "ratio"]


def test_alike_clips_keep_a_margin_around_the_median() -> None:
    alike = [case(n, 2.0) for n in range(60)]
    assert judged([*alike, case(99, 1.5), case(98, 3.0)]) == [""] * 62
    assert judged([*alike, case(99, 1.5)], ratio_margin=0.1)[-1] == "ratio"


def test_few_clips_have_no_median_and_only_the_two_limits_hold() -> None:
    few = [case(n, 2.0) for n in range(10)]
    assert judged([*few, case(97, 8.0), case(98, 0.74), case(99, 11, "x")])[-3:] == [
        "",
        "ratio",
        "ratio",
    ]


def test_steady_background_at_the_edges_is_not_taken_for_speech() -> None:
    noisy = case(0, 2.0)
    assert noisy.measures is not None
    loud = replace(noisy.measures, start_db=-15.0, end_db=-15.0, floor_db=-16.0)
    assert judged([replace(noisy, measures=loud)]) == [""]
    assert judged([replace(noisy, measures=replace(loud, floor_db=-40.0))]) == ["cut_start"]


def test_nothing_is_left_out_and_the_sums_say_so(tmp_path: Path) -> None:
    data = with_clip(tmp_path / "data", speech(0.4))
    save(data / "wavs/unlisted.wav", speech(0.6, 9))
    with (data / "metadata.csv").open("a") as file:
        file.write("gone|No such file.\nno bar in this line\n\n")
    said: list[str] = []
    manifest = prepared(data, said=said)
    found = rules(manifest.folder)
    assert found == {"short": 1, "missing": 1, "line": 1, "untranscribed": 1}
    # 6 lines, 1 file that none of them names.
    assert len(manifest.table) + found.total() == 6 + 1
    assert any(line.split()[:2] == ["missing", "1"] for line in said)


def test_all_refused_is_an_error_that_says_why(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for number in range(3):
        save(data / f"wavs/{number}.wav", speech(0.3, number))
    (data / "metadata.csv").write_text("0|x\n1|x\n2|x\n3|x\n")
    with pytest.raises(UserError, match="3 by the rule short, 1 by the rule missing") as caught:
        prepared(data)
    assert not beside(data).exists()
    kept = tmp_path / "data-prepared.refused.csv"
    assert str(kept) in caught.value.remedy
    assert len(kept.read_text().splitlines()) == 5


def test_the_strangest_accepted_clips_are_listed_first(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(0, 0.02, RATE).astype(np.float32)
    data = with_clip(tmp_path / "data", speech() + noise, subtype="PCM_16")
    folder = prepared(data, court=CourtConfig(suspects=2)).folder
    rows = (folder / "suspects.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 + 2
    assert rows[1].startswith("lowest signal to noise,")
    assert "wavs/x.wav" in rows[1]
