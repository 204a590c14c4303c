"""Fine-tuning: tokens beside old rows, frozen weights, adapters, and clips that are replayed."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file
from training import WORDS, config_for, corpus, trained

from myxtts.checkpoint import find
from myxtts.clips import find_parts
from myxtts.codec import Codec
from myxtts.config import Config
from myxtts.devices import DevicePlan
from myxtts.errors import UserError
from myxtts.gpt import Gpt, lay_out
from myxtts.layers import Adapter
from myxtts.learner.learning import parted
from myxtts.model_folder.files import open_model_folder
from myxtts.model_folder.networks import load_gpt, save_model_folder
from myxtts.optimizer import Habits
from myxtts.plan import drawn as drawn_clips
from myxtts.stages.tuning import TOKEN_AXIS, drawn, load_start, merged
from myxtts.telemetry.record import FILE, read_events
from myxtts.text import read_vocabulary, train_vocabulary, write_vocabulary
from myxtts.train.start import sized
from myxtts.train.validation import by_language
from myxtts.weights import assign_weights, named_weights, save_weights

PERSIAN = ("سلام", "خانه", "درخت", "آبی", "هفت", "سبز")
NEW = 40
OLD_TABLES = ("text_embedding/table", "text_head/kernel", "text_head/bias")
Arrays = dict[str, Any]


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus(tmp_path_factory.mktemp("english") / "old", clips=20)


@pytest.fixture(scope="module")
def persian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus(tmp_path_factory.mktemp("persian") / "new", clips=20, words=PERSIAN)


@pytest.fixture(scope="module")
def base(english: Path, plan: DevicePlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows English alone, of random weights: what it says does not matter here."""
    folder = tmp_path_factory.mktemp("base")
    vocabulary = train_vocabulary(WORDS * 3, 60, ["en"], at_most=True)
    write_vocabulary(vocabulary, folder / "vocab.json")
    model = sized(config_for(english).model, vocabulary)
    keras.utils.set_random_seed(5)
    with tf.device(plan.model):
        networks = {"gpt": Gpt(model.gpt), "codec": Codec(model.codec)}
        vectors = networks["codec"].codebook.vectors
        vectors.assign(np.random.default_rng(5).normal(size=vectors.shape))
    out = folder / "model"
    save_model_folder(out, model, networks, folder / "vocab.json", np.ones(80, np.float32))
    return out


def tuning(data: Path, base: Path, **flags: Any) -> Config:
    few = {"stages.gpt.steps": 4, "training.save_every": 2, "training.validate_every": 4}
    given = {"training.start_from": str(base), "data.language": "fa", "data.buckets": 1}
    return config_for(data, **(given | few | flags))


@pytest.fixture(scope="module")
def lora(persian: Path, english: Path, base: Path) -> Config:
    """Adapters for a language that is added, with clips of the old one among the new."""
    return tuning(
        persian,
        base,
        **{
            "text.new_tokens": NEW,
            "training.lora_rank": 2,
            "training.lora_scale": 3.0,
            "training.lr": 1e-2,
            "data.replay": str(english),
            "data.replay_language": "en",
            "data.replay_share": 0.25,
            "data.validation_share": 0.3,
        },
    )


@pytest.fixture(scope="module")
def adapted(lora: Config, plan: DevicePlan, said: list[str]) -> Path:
    return trained(lora, plan, said=said)


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


def weights(folder: Path) -> Arrays:
    return dict(load_file(folder / "gpt.safetensors"))


def old_rows(arrays: Arrays, name: str, count: int) -> Any:
    return np.take(arrays[name], range(count), TOKEN_AXIS[name])


def saved(run: Path) -> dict[str, dict[str, bytes]]:
    stored = find(run / "gpt", lambda _line: None)
    return {g: {n: a.tobytes() for n, a in stored.arrays(g)} for g in stored.groups}


def test_a_language_that_the_model_lacks_is_refused_by_tag_character_and_remedy(
    persian: Path, base: Path, plan: DevicePlan
) -> None:
    with pytest.raises(UserError, match=r"no tag \[fa\] and no token for . U\+06.. ARABIC") as told:
        trained(tuning(persian, base), plan)
    assert "text.new_tokens=2000" in told.value.remedy
    with pytest.raises(UserError, match=r"no tag \[fa\]"):
        trained(tuning(persian, base, **{"text.new_tokens": 3}), plan)


def test_a_model_brings_its_own_size_and_another_one_is_refused(
    persian: Path, base: Path, plan: DevicePlan
) -> None:
    with pytest.raises(UserError, match=r"model\.gpt\.layers: 2 → 3"):
        trained(tuning(persian, base, **{"model.gpt.layers": 3}), plan)


def test_old_rows_start_bit_same_and_added_rows_as_draws_amid_them(
    base: Path, plan: DevicePlan
) -> None:
    before, model = weights(base), open_model_folder(base).model.gpt
    grown = model.model_copy(update={"text_tokens": model.text_tokens + NEW})
    with tf.device(plan.model):
        gpt = Gpt(grown, added=NEW)
        load_start(gpt, base / "gpt.safetensors", seed=1)
    after = merged({name: v.numpy() for name, v in named_weights(gpt).items()}, 1.0)
    for name in OLD_TABLES:
        assert after[name].shape[TOKEN_AXIS[name]] == grown.text_tokens
        same = old_rows(after, name, model.text_tokens)
        assert same.tobytes() == before[name].tobytes()
    assert after.keys() == before.keys()


def test_drawn_rows_have_the_mean_and_spread_of_the_old_and_depend_on_the_seed_alone() -> None:
    old = np.random.default_rng(0).normal([1.0, -2.0], [0.5, 3.0], size=(500, 2))
    new = drawn(old, 4000, 0, (7, 0))
    np.testing.assert_allclose(new.mean(0), old.mean(0), atol=0.15)
    np.testing.assert_allclose(new.std(0), old.std(0), rtol=0.05)
    assert new.tobytes() == drawn(old, 4000, 0, (7, 0)).tobytes()
    assert new.tobytes() != drawn(old, 4000, 0, (8, 0)).tobytes()


def test_adapters_merged_into_their_matrices_say_the_same(base: Path, plan: DevicePlan) -> None:
    model = open_model_folder(base).model.gpt
    grown, random = model.model_copy(update={"text_tokens": 90}), np.random.default_rng(2)
    with tf.device(plan.model):
        tuned = Gpt(grown, adapter=Adapter(2, 3.0), added=90 - model.text_tokens)
        load_start(tuned, base / "gpt.safetensors", seed=0)
        for name, variable in named_weights(tuned).items():
            if name.endswith("/up"):
                variable.assign(random.normal(0, 0.3, variable.shape))
        whole = Gpt(grown)
        arrays = {name: v.numpy() for name, v in named_weights(tuned).items()}
        assign_weights(whole, merged(arrays, 3.0), "merged")
        text_BT, codes_BM = random.integers(0, 90, (2, 7)), random.integers(0, 32, (2, 9))
        lengths = tf.constant([7, 5]), tf.constant([9000, 6000])
        sequence = lay_out(
            grown, tf.constant(text_BT), lengths[0], tf.constant(codes_BM), lengths[1]
        )
        mel_BFA = tf.constant(random.normal(size=(2, 20, 80)), tf.float32)
        apart, together = (gpt(gpt.voice(mel_BFA), sequence) for gpt in (tuned, whole))
        plain = load_gpt(open_model_folder(base), plan.model)
        before = plain(plain.voice(mel_BFA), sequence._replace(text_BX=sequence.text_BX % 30))
    np.testing.assert_allclose(apart.text_BXV, together.text_BXV, atol=2e-5)
    np.testing.assert_allclose(apart.audio_BYV, together.audio_BYV, atol=2e-5)
    assert np.abs(before.audio_BYV - together.audio_BYV).max() > 0.01


def test_with_adapters_only_they_and_the_added_rows_learn_and_are_saved(
    adapted: Path, base: Path, said: list[str]
) -> None:
    names = {name.removeprefix("gpt/") for name in saved(adapted)["weights"]}
    layers = [f"block_{n}/{layer}" for n in (0, 1) for layer in ("qkv", "out", "widen", "narrow")]
    adapters = {f"{layer}/{part}" for layer in layers for part in ("down", "up")}
    assert names == adapters | {f"added_{name}" for name in OLD_TABLES}
    assert any("numbers learn, " in line and "% of the weights" in line for line in said)


def test_what_adapters_learned_is_in_plain_weights_of_the_model_folder(
    adapted: Path, base: Path, plan: DevicePlan
) -> None:
    before, after = weights(base), weights(adapted / "model")
    changed = {name for name in before if before[name].tobytes() != after[name].tobytes()}
    kernels = {f"block_{n}/{k}/kernel" for n in (0, 1) for k in ("qkv", "out", "widen", "narrow")}
    assert changed == kernels | set(OLD_TABLES)
    folder = open_model_folder(adapted / "model")
    assert load_gpt(folder, plan.model).config.text_tokens == len(
        read_vocabulary(folder.vocabulary)
    )
    count = before["text_embedding/table"].shape[0]
    for name in OLD_TABLES:
        assert old_rows(after, name, count).tobytes() == before[name].tobytes()


def test_each_language_that_judges_has_a_loss_of_its_own(adapted: Path, said: list[str]) -> None:
    (event,) = (
        event
        for file in (adapted / "gpt").glob(f"*/{FILE}")
        for event in read_events(file)
        if event["kind"] == "validation"
    )
    two = [event["validation_loss_in_en"], event["validation_loss_in_fa"]]
    assert min(two) < event["validation_loss"] < max(two)
    assert any(line.startswith("   loss by language: en ") for line in said)


def test_a_language_has_the_mean_over_its_own_clips_and_none_without_a_clip() -> None:
    means = {"loss": 3.0, "share_in_en": 0.25, "loss_in_en": 0.5, "share_in_fa": 0.0}
    assert by_language(means | {"loss_in_fa": 0.0}) == {"loss": 3.0, "loss_in_en": 2.0}


def test_an_adapted_run_goes_on_bit_same_from_the_same_file_and_from_no_other(
    adapted: Path, lora: Config, base: Path, plan: DevicePlan, tmp_path: Path
) -> None:
    broken = tmp_path / adapted.name
    shutil.copytree(adapted, broken)
    shutil.rmtree(broken / "gpt" / "checkpoints" / "step-00000004")
    (broken / "model" / "gpt.safetensors").unlink()
    other = tmp_path / "base"
    shutil.copytree(base, other)
    with tf.device(plan.model):
        save_weights(Gpt(open_model_folder(base).model.gpt), other / "gpt.safetensors")
    training = lora.training.model_copy(update={"start_from": other})
    with pytest.raises(UserError, match="is not the file that"):
        trained(lora.model_copy(update={"training": training}), plan, broken)
    trained(lora, plan, broken)
    assert saved(broken) == saved(adapted)
    files = [run / "model" / "gpt.safetensors" for run in (broken, adapted)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_frozen_weights_stay_bit_same_and_are_in_no_checkpoint(
    persian: Path, base: Path, plan: DevicePlan
) -> None:
    frozen = ["text_embedding/table", "text_head/*", "conditioning/*", "block_0/*"]
    flags = {"training.freeze": frozen, "text.new_tokens": NEW, "stages.gpt.steps": 1}
    flags["data.validation_share"] = 0.0
    run = trained(tuning(persian, base, **flags), plan)
    before, after = weights(base), weights(run / "model")
    count = before["text_embedding/table"].shape[0]
    names = set(saved(run)["weights"])
    for name, array in before.items():
        stays = name.startswith(("text_embedding/", "text_head/", "conditioning/", "block_0/"))
        now = old_rows(after, name, count) if name in TOKEN_AXIS else after[name]
        assert (now.tobytes() == array.tobytes()) == stays, name
        assert (f"gpt/{name}" in names) != stays
    assert "gpt/added_text_embedding/table" in names


def test_a_pattern_that_names_no_weight_is_an_error_with_the_nearest_name() -> None:
    players = {
        "gpt": {"conditioning/first/kernel": 0, "block_0/qkv/kernel": 0, "last_norm/beta": 0}
    }
    habits = Habits(betas=(0.9, 0.9), decay=0.0, longest=0.0)
    with pytest.raises(UserError, match="no weight is called conditoning") as told:
        parted(players, habits._replace(frozen=("block_0/*", "conditoning/*")))
    assert told.value.remedy == "did you mean conditioning/*?"
    with pytest.raises(UserError, match="leave no weight to learn"):
        parted(players, habits._replace(frozen=("*",)))


def test_replay_gives_its_share_of_clips_in_their_own_language(lora: Config) -> None:
    train, judge = find_parts(lora, None, lambda _line: None)
    languages = Counter(language for _, language in train.texts(lora.text))
    assert languages["en"] == train.replayed == round(languages["fa"] / 3)
    names = train.manifest.column("id")[train.rows]
    assert all(name.startswith("replay/") for name in names[-train.replayed :])
    assert len(train.own.rows) == languages["fa"]
    again, _ = find_parts(lora, None, lambda _line: None)
    assert again.rows.tolist() == train.rows.tolist()
    judges = set(judge.manifest.column("id")[judge.rows])
    assert not judges & set(names)


def test_too_few_clips_to_replay_come_several_times_and_that_is_told(lora: Config) -> None:
    told: list[str] = []
    data = lora.data.model_copy(update={"replay_share": 0.8})
    train, _ = find_parts(lora.model_copy(update={"data": data}), None, told.append)
    counts = Counter(train.manifest.column("id")[train.rows].tolist())
    assert train.replayed == 4 * len(train.own.rows)
    assert max(counts.values()) - min(n for c, n in counts.items() if c.startswith("replay/")) <= 1
    assert any("80 % of an epoch" in line and "times" in line for line in told)


def test_a_larger_draw_keeps_the_smaller_one() -> None:
    clips = [f"c{n}" for n in range(50)]
    assert drawn_clips(clips, 30, 1)[:10].tolist() == drawn_clips(clips, 10, 1).tolist()
    assert drawn_clips(clips, 30, 1).tolist() != drawn_clips(clips, 30, 2).tolist()
