"""What TensorBoard reads of a run."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import IMAGES, EventAccumulator
from tensorboard.plugins.audio.metadata import Encoding, parse_plugin_metadata

from myxtts.devices import DevicePlan, explicit_moves
from myxtts.errors import UserError
from myxtts.telemetry.verdict import Verdict
from myxtts.view.board import PREFIX, Board, open_board
from myxtts.view.pictures import GAP, PIXELS_A_MEL, mel_pair

VERDICT = Verdict(10, 0.182, 0.97, 61.2, {"read": 0.01, "transfer": 0.0, "host": 0.02})
RNG = np.random.default_rng(0)


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={IMAGES: 0})
    events.Reload()
    return events


def course(folder: Path, tag: str) -> list[tuple[int, float]]:
    return [(event.step, round(event.value, 6)) for event in read(folder).Scalars(tag)]


def test_scalars_come_back_by_their_tags_and_steps(tmp_path: Path) -> None:
    with open_board(tmp_path, 1) as board:
        for step in (10, 20):
            board.scalars(step, {"loss/mel": 1 / step, "lr": 1e-4})
    assert course(tmp_path, "loss/mel") == [(10, 0.1), (20, 0.05)]
    assert course(tmp_path, "lr") == [(10, 1e-4), (20, 1e-4)]


def test_a_verdict_is_busy_shares_waits_and_speed(tmp_path: Path) -> None:
    with open_board(tmp_path, 1) as board:
        board.verdict(10, VERDICT, data_busy=0.4)
        board.verdict(20, VERDICT)
        board.validation(20, {"loss": 3.4})
    tags = "audio_rate busy/data busy/model step_seconds validation/loss waits/host waits/read"
    assert sorted(read(tmp_path).Tags()["scalars"]) == [*tags.split(), "waits/transfer"]
    assert course(tmp_path, "busy/data") == [(10, 0.4)]
    assert course(tmp_path, "waits/host")[1] == (20, 0.02)


def test_a_resumed_run_takes_back_the_steps_it_takes_again(tmp_path: Path) -> None:
    for first, value in ((1, 1.0), (6, 2.0), (8, 3.0)):  # All within one second.
        with open_board(tmp_path, first) as board:
            for step in range(first, 10):
                board.scalars(step, {"loss": value})
    assert len(list(tmp_path.glob(f"{PREFIX}*"))) == 3
    expected = [1.0] * 5 + [2.0] * 2 + [3.0] * 2
    assert course(tmp_path, "loss") == list(zip(range(1, 10), expected, strict=True))


def test_every_event_is_there_before_its_call_returns_so_a_killed_run_keeps_it(
    tmp_path: Path,
) -> None:
    with open_board(tmp_path, 1) as board:
        for step, loss in ((1, 4.0), (2, 3.0)):
            board.scalars(step, {"loss": loss})
            assert course(tmp_path, "loss")[-1] == (step, loss)


def test_the_real_mel_lies_above_the_generated_one_with_low_tones_below() -> None:
    real_TM, made_TM = np.zeros([6, 4], np.float32), np.zeros([9, 4], np.float32)
    real_TM[:, 0], made_TM[:, 3] = 1.0, 1.0  # The lowest tone above, the highest below.
    picture_HWC = mel_pair(real_TM, made_TM)
    half = 4 * PIXELS_A_MEL
    assert picture_HWC.shape == (2 * half + GAP, 9, 3)
    loud = picture_HWC[half - 1, 0]
    assert (picture_HWC[half + GAP, 0] == loud).all()
    assert loud.sum() > picture_HWC[0, 0].sum()
    assert (picture_HWC[:half, 6:] == 255).all()


def test_one_stray_value_leaves_a_mel_its_colours() -> None:
    real_TM = RNG.normal(size=[200, 80])
    stray_TM = real_TM.copy()
    stray_TM[:2, 0] = 1e9, np.nan
    calm, stray = (mel_pair(each, real_TM)[:160].astype(int) for each in (real_TM, stray_TM))
    assert np.abs(calm - stray).mean() < 2


def test_a_mel_comes_back_as_a_picture_that_others_read(tmp_path: Path) -> None:
    real_TM, made_TM = RNG.normal(size=[50, 80]), RNG.normal(size=[40, 80])
    with open_board(tmp_path, 1) as board:
        board.mels(500, "mel/clip-17", real_TM, made_TM)
    (event,) = read(tmp_path).Images("mel/clip-17")
    assert (event.step, event.height, event.width) == (500, 324, 50)
    decoded = tf.io.decode_png(event.encoded_image_string)
    assert np.array_equal(decoded, mel_pair(real_TM, made_TM))


def test_sound_comes_back_as_it_was_and_cut_off_where_too_loud(tmp_path: Path) -> None:
    wave_S = np.sin(np.arange(2400) / 10).astype(np.float32) * 0.5
    wave_S[:2] = 7.0, -7.0
    with open_board(tmp_path, 1) as board:
        board.audio(500, "audio/clip-17", wave_S, 24_000)
    (event,) = read(tmp_path).Tensors("audio/clip-17")
    kind = read(tmp_path).SummaryMetadata("audio/clip-17").plugin_data
    assert parse_plugin_metadata(kind.content).encoding == Encoding.Value("WAV")
    heard_S, rate = soundfile.read(io.BytesIO(event.tensor_proto.string_val[0]))
    assert (event.step, rate, len(heard_S)) == (500, 24_000, 2400)
    assert np.abs(heard_S - np.clip(wave_S, -1, 1)).max() < 1e-4


def test_a_tensor_is_refused_so_that_no_device_is_waited_for(
    tmp_path: Path, plan: DevicePlan
) -> None:
    with tf.device(plan.model):
        lr = tf.constant(1e-4)
        mel_TM = tf.zeros([4, 80])
    with open_board(tmp_path, 1) as board, explicit_moves():
        with pytest.raises(TypeError, match="lr is a EagerTensor"):
            board.scalars(1, {"lr": lr})
        with pytest.raises(TypeError, match="what is on the host"):
            board.mels(1, "mel", np.zeros([4, 80]), mel_TM)
        board.mels(1, "mel", np.zeros([4, 80]), np.zeros([4, 80]))


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"), open_board(tmp_path / "no", 1):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / f"{PREFIX}0000001000"
    path.symlink_to("/dev/full")
    with pytest.raises(UserError, match="cannot be written"):
        Board(path)
