"""What the data device makes of real batches, and the way there from a folder of clips."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import tensorflow as tf
from training import TINY

from myxtts.batch import Tensors
from myxtts.clips import ClipSound, open_clips
from myxtts.config import AugmentConfig, Config, DataConfig, load_config
from myxtts.devices import DevicePlan
from myxtts.errors import UserError
from myxtts.features import feature_extractor
from myxtts.pipeline import Program
from myxtts.rehearsal import rehearse
from myxtts.telemetry.record import Recorder

NOISY = DataConfig(augment=AugmentConfig(noise=1.0, gain=1.0))
SAMPLES = 60 * 1024


def batch_on(device: str) -> Tensors:
    random = np.random.default_rng(0)
    with tf.device(device):
        return {
            "pcm": tf.constant(random.integers(-8000, 8000, (2, SAMPLES), np.int16)),
            "samples": tf.constant([SAMPLES, 30000], tf.int64),
            "weights": tf.constant([1.0, 1.0]),
        }


def made(plan: DevicePlan, data: DataConfig, number: int) -> dict[str, np.ndarray]:
    program = Program(feature_extractor(data, seed=3), plan.data, name="extract")
    with tf.device(plan.data):
        features = program(batch_on(plan.data), tf.constant(number, tf.int64))
    return {name: value.numpy() for name, value in features.items()}


def test_the_same_batch_number_gives_the_same_bits_and_another_gives_others(
    plan: DevicePlan,
) -> None:
    first, again, other = (made(plan, NOISY, number) for number in (5, 5, 6))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["mel"], other["mel"])
    assert not np.array_equal(first["conditioning_from"], other["conditioning_from"])


def test_features_are_mels_of_every_frame_and_one_slice_of_each_clip(plan: DevicePlan) -> None:
    features = made(plan, DataConfig(), 0)
    assert features["mel"].shape == (2, SAMPLES // 256 + 1, 80)
    assert features["frames"].tolist() == [SAMPLES // 256 + 1, 30000 // 256 + 1]
    assert features["conditioning"].shape == (2, 517, 80)
    assert "pcm" not in features


def test_no_feature_is_int32(plan: DevicePlan) -> None:
    assert all(value.dtype != np.int32 for value in made(plan, DataConfig(), 0).values())


def test_a_codec_adds_its_codes(plan: DevicePlan) -> None:
    def codec(mel_BTM: tf.Tensor) -> tf.Tensor:
        return tf.zeros([2, mel_BTM.shape[1] // 4], tf.int64)

    program = Program(feature_extractor(DataConfig(), 0, codec=codec), plan.data, name="extract")
    with tf.device(plan.data):
        features = program(batch_on(plan.data), tf.constant(0, tf.int64))
    assert features["codes"].shape == (2, 60)


def ljspeech(folder: Path, clips: int) -> Path:
    (folder / "wavs").mkdir(parents=True)
    lines = []
    for number in range(clips):
        times = np.arange(int(22050 * (1 + number % 3))) / 22050
        swell = np.sin(np.pi * times / times[-1]) ** 2
        tone = 0.4 * swell * np.sin(2 * np.pi * (150 + 5 * number) * times)
        soundfile.write(folder / "wavs" / f"c{number}.wav", tone, 22050, subtype="PCM_16")
        lines.append(f"c{number}|spoken words {number}|spoken words {number}")
    (folder / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder


def config_for(data: Path, **flags: object) -> Config:
    given = {"data.train": str(data), "data.language": "en", "data.batch_size": 4}
    runs = {"telemetry.runs": str(data.parent / "runs")}
    return load_config(flags={**TINY, **given, **runs, **flags})


@pytest.mark.parametrize("native", [False, True])
def test_a_folder_of_clips_reaches_the_step(plan: DevicePlan, tmp_path: Path, native: bool) -> None:
    config = config_for(
        ljspeech(tmp_path / "my clips", 24), **{"data.use_tf_native_loading": native}
    )
    said: list[str] = []
    sound = ClipSound(open_clips(config, 1, said.append), config.data)
    run = rehearse(config, plan, 5, sound, said.append)
    assert [times.step for times in run.times] == [1, 2, 3, 4, 5]
    assert all(times.audio > 0 for times in run.times)
    assert (tmp_path / "my clips-prepared").exists() is not native


def test_a_second_start_prepares_nothing_again(plan: DevicePlan, tmp_path: Path) -> None:
    config = config_for(ljspeech(tmp_path / "clips", 8))
    open_clips(config, 1, lambda _line: None)
    manifest = tmp_path / "clips-prepared" / "manifest.parquet"
    made_at = manifest.stat().st_mtime_ns
    open_clips(config, 1, lambda _line: None)
    assert manifest.stat().st_mtime_ns == made_at


def test_the_books_know_the_sound_of_each_batch(plan: DevicePlan, tmp_path: Path) -> None:
    config = config_for(ljspeech(tmp_path / "clips", 12))
    sound = ClipSound(open_clips(config, 1, lambda _line: None), config.data)
    with sound.open(plan.data, 3, Recorder()) as batches:
        read = [int(tf.reduce_sum(batch.tensors["samples"])) / 22050 for batch in batches]
    assert [sound.seconds(number) for number in range(3)] == pytest.approx(read)


def test_holding_out_every_clip_is_an_error(tmp_path: Path) -> None:
    config = config_for(ljspeech(tmp_path / "clips", 4), **{"data.validation_share": 0.999999})
    with pytest.raises(UserError, match="held out to judge"):
        open_clips(config, 1, lambda _line: None)


def test_a_line_that_cannot_be_read_is_told_also_without_preparing(tmp_path: Path) -> None:
    data = ljspeech(tmp_path / "clips", 3)
    with (data / "metadata.csv").open("a", encoding="utf-8") as listed:
        listed.write("\nno bars in this line\n")
    config = config_for(data, **{"data.use_tf_native_loading": True})
    with pytest.raises(UserError, match=r"metadata.csv:4: "):
        open_clips(config, 1, lambda _line: None)
