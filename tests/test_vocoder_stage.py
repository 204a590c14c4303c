"""The vocoder's training: pieces from the data device, two players, a part of the model."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file
from test_train import as_killed_after, checkpoint, losses
from training import config_for, corpus, trained

from myxtts.batch import Batch, Tensors
from myxtts.clips import ClipSound, find_parts, open_part
from myxtts.config import Config
from myxtts.devices import DevicePlan
from myxtts.errors import UserError
from myxtts.gpt import lay_out
from myxtts.layers import Precision
from myxtts.learner import At, Learner, Moment, Settings
from myxtts.model_folder.files import MEL_STATS, open_model_folder
from myxtts.model_folder.networks import load_vocoder
from myxtts.pipeline import Program, extract, is_on, move
from myxtts.speaker import Speaker, reference_sound, stand_in
from myxtts.stages import Materials, VocoderStage
from myxtts.stages.vocoder import latents_of
from myxtts.telemetry.record import Recorder
from myxtts.train.start import with_vocabulary
from myxtts.train.vocoding import long_enough
from myxtts.vocoder import samples_for_latents
from myxtts.weights import save_weights

VOCODER = {"training.stage": "vocoder", "stages.vocoder.lr": 2e-3, "data.buckets": 1}
BEFORE = {
    "stages.dvae.steps": 4,
    "stages.gpt.steps": 2,
    "training.pictures_every": 0,
    "data.buckets": 1,
}
WINDOW, WIDTH, SPEAKER = 8, 32, 8
PINNED = [-0.8660254, -0.28867513, -0.28867513, 0.28867513]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus(tmp_path_factory.mktemp("vocoding") / "clips")


@pytest.fixture(scope="module")
def before(data: Path, plan: DevicePlan) -> Path:
    """A run with a codec and a GPT."""
    return trained(config_for(data, **BEFORE), plan)


@pytest.fixture(scope="module")
def whole(before: Path, data: Path, plan: DevicePlan) -> Path:
    """The same run after ten steps of the vocoder."""
    return trained(config_for(data, **VOCODER), plan, before)


class Material(NamedTuple):
    """What a stage is made of, and a batch of clips on the data device."""

    config: Config
    materials: Materials
    clips: Batch

    def stage(self, precision: Precision = "float32") -> VocoderStage:
        return VocoderStage(self.config, self.materials, precision)


@pytest.fixture(scope="module")
def material(whole: Path, data: Path, plan: DevicePlan) -> Material:
    model = whole / "model"
    config = config_for(data, **VOCODER)
    parts = find_parts(config, None, silent)
    config, tokenizer = with_vocabulary(config, parts[0], model, silent)
    files = {part: model / f"{part}.safetensors" for part in ("codec", "gpt")}
    materials = Materials(load_file(model / MEL_STATS)["mel_stats"], weights=files)
    sound = ClipSound(open_part(parts[0], tokenizer, config, 1, silent), config.data)
    return Material(config, materials, next(sound.read(plan.data, range(1), Recorder())))


def silent(_line: str) -> None:
    """Nobody listens."""


def features_of(stage: VocoderStage, clips: Batch, device: str) -> Batch:
    program = Program(stage.features(device), device, name="extract")
    return next(extract(iter([clips]), program, Recorder()))


@pytest.fixture(scope="module")
def features(material: Material, plan: DevicePlan) -> Batch:
    return features_of(material.stage(), material.clips, plan.data)


def test_ten_steps_equal_five_and_a_restart_and_five_more(
    whole: Path, data: Path, plan: DevicePlan, tmp_path: Path
) -> None:
    broken = as_killed_after(5, whole, "vocoder", tmp_path)
    trained(config_for(data, **VOCODER), plan, broken)
    assert checkpoint(broken, "vocoder") == checkpoint(whole, "vocoder")
    after = {step: told for step, told in losses(whole, "vocoder").items() if step > 5}
    assert losses(broken, "vocoder") == after


def test_the_mels_come_nearer_and_the_discriminators_learn_too(whole: Path) -> None:
    course = [told for _, told in sorted(losses(whole, "vocoder").items())]
    assert len(course) == 10
    assert course[-1]["loss_mel"] < 0.7 * course[0]["loss_mel"]
    opinions = [told["loss_real"] + told["loss_made"] for told in (course[0], course[-1])]
    assert opinions[1] < opinions[0]


def test_the_models_folder_gets_the_vocoder_and_the_checkpoint_keeps_both_players(
    whole: Path, plan: DevicePlan
) -> None:
    vocoder = load_vocoder(open_model_folder(whole / "model"), plan.model)
    kept = checkpoint(whole, "vocoder")
    ours = vocoder.first.kernel.numpy().tobytes()
    assert kept["weights/vocoder/first/kernel"] == ours
    assert any(name.startswith("weights/discriminators/period_3/") for name in kept)


def test_mels_of_real_and_made_sound_are_to_be_seen(whole: Path) -> None:
    boards = [path.read_bytes() for path in (whole / "vocoder" / "board").iterdir()]
    assert any(b"mel/c0" in board and b"PNG" in board for board in boards)


def test_features_lie_on_the_data_device_and_only_pieces_go_on(
    features: Batch, plan: DevicePlan
) -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in features.tensors.items()}
    assert shapes == {
        "speaker": (4, SPEAKER),
        "latents": (4, WINDOW, WIDTH),
        "wave": (4, samples_for_latents(WINDOW)),
        "first": (4,),
        "weights": (4,),
    }
    assert all(is_on(tensor, plan.data) for tensor in features.tensors.values())
    lengths_B = np.linalg.norm(features.tensors["speaker"], axis=1)
    np.testing.assert_allclose(lengths_B, 1, rtol=1e-5)


def test_the_model_device_holds_nothing_of_the_gpt(material: Material, plan: DevicePlan) -> None:
    students = material.stage().student(plan.model).players
    assert set(students) == {"vocoder", "discriminators"}
    weights = [weight for player in students.values() for weight in player.values()]
    assert all(is_on(tf.convert_to_tensor(weight), plan.model) for weight in weights)


def test_a_clips_latents_in_a_padded_batch_are_those_it_is_spoken_with(
    material: Material, plan: DevicePlan
) -> None:
    gpt, random = material.stage().frozen(plan.data).gpt, np.random.default_rng(1)
    with tf.device(plan.data):
        voice_BPD = tf.constant(random.standard_normal((2, 32, WIDTH)), tf.float32)
        given = {
            "text": tf.constant(random.integers(3, 20, (2, 6)), tf.int64),
            "text_tokens": tf.constant([3, 6], tf.int64),
            "codes": tf.constant(random.integers(0, 32, (2, 9)), tf.int64),
            "samples": tf.constant([5 * 1024, 9 * 1024 - 100], tf.int64),
        }
        found = latents_of(gpt, voice_BPD, given)
        for row, (words, codes) in enumerate([(3, 5), (6, 9)]):
            mine = {name: tensor[row : row + 1] for name, tensor in given.items()}
            text_BT, codes_BM = mine["text"][:, :words], mine["codes"][:, :codes]
            alone = lay_out(gpt.config, text_BT, mine["text_tokens"], codes_BM, mine["samples"])
            wanted = gpt.latents(voice_BPD[row : row + 1], alone)[0, :codes]
            np.testing.assert_allclose(found[row, :codes], wanted, atol=2e-5)


def test_a_model_with_a_speaker_encoder_hears_each_clip_by_it(
    material: Material, plan: DevicePlan, tmp_path: Path
) -> None:
    with tf.device(plan.data):
        speaker = Speaker(material.config.model.speaker)
        clips = material.clips.tensors
        # A row without a clip among them.
        here_B = tf.constant([1, 1, 1, 0], tf.int64)
        given = {**clips, "samples": clips["samples"] * here_B}
        given |= {"weights": tf.cast(here_B, tf.float32)}
        given |= {"pcm": clips["pcm"] * tf.cast(here_B, tf.int16)[:, None]}
        lengths_B = given["samples"]
        wanted = speaker(*reference_sound(tf.cast(given["pcm"], tf.float32) / 2**15, lengths_B))
    save_weights(speaker, tmp_path / "speaker.safetensors")
    files = {**material.materials.weights, "speaker": tmp_path / "speaker.safetensors"}
    stage = material._replace(materials=replace(material.materials, weights=files)).stage()
    made = features_of(stage, material.clips._replace(tensors=given), plan.data).tensors
    np.testing.assert_allclose(made["speaker"][:3], wanted[:3], atol=1e-5)
    assert all(np.isfinite(tensor).all() for tensor in made.values())
    assert told_once(stage, made, plan.model)["loss_speaker"] > 0


def told_once(stage: VocoderStage, features: Tensors, device: str) -> dict[str, float]:
    """What a batch is found to lose; nothing of it learns."""
    student, moved = stage.student(device), move(features, device)
    with tf.device(device):
        moment = Moment(tf.zeros([2], tf.int32), tf.zeros([], tf.int64), tf.zeros([]))
        return {n: float(value) for n, value in student.learn(moved, moment).scalars.items()}


def steps_on(
    stage: VocoderStage, features: Batch, device: str, count: int, *, jit: bool
) -> list[dict[str, float]]:
    """What a learner tells while it learns one batch again and again."""
    learner = Learner(stage.student, [device], Settings(stage.habits, seed=0, jit=jit))
    hand = features._replace(tensors=move(features.tensors, device))
    course = [learner([(hand,)], At(step, step / 10, 2e-3)) for step in range(1, count + 1)]
    return [{name: float(value) for name, value in told.items()} for told in course]


def test_xla_finds_what_graph_mode_finds(
    whole: Path, material: Material, features: Batch, plan: DevicePlan
) -> None:
    (told,) = steps_on(material.stage(), features, plan.model, 1, jit=True)
    wanted = losses(whole, "vocoder")[1]
    for name, value in wanted.items():
        assert told[name] == pytest.approx(value, rel=1e-3), name


def test_the_vocoder_learns_in_half_precision(
    material: Material, features: Batch, plan: DevicePlan
) -> None:
    # Its rounding is a good part of sound as quiet as the first: the numbers are not float32's.
    course = steps_on(material.stage("mixed_bfloat16"), features, plan.model, 6, jit=False)
    assert course[-1]["loss_mel"] < 0.8 * course[0]["loss_mel"]
    assert all(np.isfinite(value) for told in course for value in told.values())


def test_a_stand_in_for_the_speaker_encoder_never_changes() -> None:
    random = np.random.default_rng(2)
    voice_BPD = tf.constant(random.standard_normal((2, 32, WIDTH)), tf.float32)
    vectors = stand_in(tf.concat([voice_BPD, 2 * voice_BPD], 0), SPEAKER).numpy()
    np.testing.assert_allclose(vectors[:2], vectors[2:], atol=1e-6)
    assert vectors[0] @ vectors[1] < 0.9
    np.testing.assert_allclose(stand_in(tf.ones([1, 32, 3]), 4)[0], PINNED, atol=1e-6)


def test_a_vocoder_without_a_gpt_is_refused_before_there_is_a_run(
    data: Path, plan: DevicePlan, tmp_path: Path
) -> None:
    config = config_for(data, **VOCODER, **{"telemetry.runs": str(tmp_path / "runs")})
    with pytest.raises(UserError, match="needs a finished codec and gpt, and no model is named"):
        trained(config, plan)
    assert not (tmp_path / "runs").exists()


def test_a_run_that_lacks_its_gpt_is_told_which_command_makes_it(
    whole: Path, data: Path, plan: DevicePlan, tmp_path: Path
) -> None:
    broken = tmp_path / "run"
    (broken / "model").mkdir(parents=True)
    shutil.copy(whole / "model" / "codec.safetensors", broken / "model")
    with pytest.raises(UserError, match="needs a finished gpt") as error:
        trained(config_for(data, **VOCODER), plan, broken)
    assert f"--resume {broken} --stage gpt" in error.value.remedy


def test_clips_shorter_than_a_piece_are_counted_and_left_out(data: Path) -> None:
    said: list[str] = []
    parts = find_parts(config_for(data, **VOCODER), None, silent)
    train, _ = long_enough(parts, 16 * 1024, said.append)
    lengths = train.manifest.column("samples")[train.rows]
    assert lengths.min() >= 16 * 1024
    assert said[0].startswith(f"{len(parts[0].rows) - len(train.rows)} of {len(parts[0].rows)}")
    with pytest.raises(UserError, match="no clip of train has"):
        long_enough(parts, 100 * 1024, silent)
