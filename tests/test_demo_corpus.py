"""The demo corpus: synthetic, the same every time, and split by text."""

import random
from pathlib import Path

import numpy as np
import pytest
import soundfile
from clips import contents, prepared, rules

from myxtts import demo_corpus
from myxtts.demo_corpus import CLIPS, corpus, make_corpus
from myxtts.demo_corpus.corpus import plan_corpus
from myxtts.demo_corpus.grammar import all_phrases, neighbours, split
from myxtts.errors import UserError


def test_the_grammar_has_the_phrases_that_were_measured() -> None:
    # 10,780 and 1,296, less those in which a thing would stand beside itself.
    assert len(all_phrases("en")) == 10780 - 14 * 5 - 7 * 14 * 5
    assert len(all_phrases("fa")) == 1296


@pytest.mark.parametrize(("language", "train", "held_out"), [("en", 3000, 60), ("fa", 900, 30)])
def test_what_is_held_out_is_never_learned_but_one_word_away(
    language: str, train: int, held_out: int
) -> None:
    learned, unheard = split(language, train, held_out, random.Random(0))  # noqa: S311
    assert (len(set(learned)), len(set(unheard))) == (train, held_out)
    assert not set(learned) & set(unheard)
    known = set(learned)
    assert all(any(near in known for near in neighbours(language, p)) for p in unheard)


def test_the_plan_is_the_same_for_a_seed_and_another_for_another() -> None:
    assert plan_corpus(400, 1) == plan_corpus(400, 1)
    assert plan_corpus(400, 1) != plan_corpus(400, 2)
    counted = [clip.part for clip in plan_corpus(CLIPS, 0)]
    assert (counted.count("train"), counted.count("heldout")) == (7800, 180)


def test_more_clips_than_phrases_are_an_error_with_a_number_that_works() -> None:
    with pytest.raises(UserError, match="phrases in fa") as caught:
        plan_corpus(20000, 0)
    assert plan_corpus(int(caught.value.remedy.removeprefix("--clips ")), 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("espeakng_loader")
    out = tmp_path_factory.mktemp("demo") / "demo"
    make_corpus(out, 40, 0, lambda _: None)
    return out


def test_clips_are_trimmed_and_have_one_peak(made: Path) -> None:
    wavs = sorted((made / "train" / "wavs").iterdir())
    assert len(wavs) == 40
    for path in wavs:
        sound, rate = soundfile.read(path)
        assert rate == 22050
        assert np.abs(sound).max() == pytest.approx(0.7, abs=1e-3)
        assert 0.8 < len(sound) / rate < 5
        assert np.abs(sound[:256]).max() < 0.1


def test_no_text_is_in_both_parts_and_both_languages_are_in_each(made: Path) -> None:
    parts = {}
    for part in ("train", "heldout"):
        lines = (made / part / "metadata.csv").read_text(encoding="utf-8").splitlines()
        parts[part] = {line.split("|")[1] for line in lines}
        assert {line.split("|")[4] for line in lines} == {"en", "fa"}
        assert {line.split("|")[3] for line in lines} == {"f2", "steph"}
    assert not parts["train"] & parts["heldout"]


def test_prepare_accepts_every_clip_of_it(made: Path) -> None:
    manifest = prepared(made / "train", language=None)
    assert rules(manifest.folder) == {}
    assert set(manifest.table["language"].to_pylist()) == {"en", "fa"}


def test_the_same_seed_gives_the_same_bytes(made: Path, tmp_path: Path) -> None:
    make_corpus(tmp_path / "demo", 40, 0, lambda _: None)
    again = tmp_path / "demo/train/wavs"
    assert contents(again) == contents(made / "train/wavs")


def test_its_readme_says_that_it_is_synthetic_and_what_for(made: Path) -> None:
    words = (made / "README.txt").read_text()
    assert "Synthetic" in words
    assert "for trying out" in words
    assert not list(made.parent.glob("*.part"))


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="espeak-ng, which is not installed") as caught:
        demo_corpus.make_corpus(tmp_path / "demo", 40, 0, lambda _: None)
    assert "myxtts[demo]" in caught.value.remedy
