"""Decoding one file, and the processes that survive a decoder that does not."""

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile
from clips import RATE, Floats, ljspeech, prepared, refused, save, speech

from myxtts.config import CourtConfig
from myxtts.decode import Limits, UnreadableError, measure, read_sound

LIMITS = Limits(RATE, 11.6, 8000, 768000, 10.0)


def test_sixteen_bit_mono_at_the_right_rate_comes_through_bit_for_bit(tmp_path: Path) -> None:
    wanted = np.random.default_rng(0).integers(-32768, 32768, 30000).astype(np.int16)
    soundfile.write(tmp_path / "a.wav", wanted, RATE)
    sound = read_sound(tmp_path / "a.wav", LIMITS)
    assert np.array_equal(sound.pcm, wanted)
    assert (sound.limited, sound.channels, sound.rate) == (0, 1, RATE)


@pytest.mark.parametrize(
    ("name", "subtype", "error"),
    [
        ("a.wav", "PCM_U8", 0.01),
        ("a.wav", "PCM_24", 1e-4),
        ("a.wav", "PCM_32", 1e-4),
        ("a.wav", "FLOAT", 1e-4),
        ("a.wav", "DOUBLE", 1e-4),
        ("a.flac", "PCM_24", 1e-4),
        ("a.ogg", "VORBIS", 0.1),
        ("a.mp3", "MPEG_LAYER_III", 0.1),
        ("a.opus", None, 0.1),
    ],
)
def test_every_format_sounds_alike(
    tmp_path: Path, name: str, subtype: str | None, error: float
) -> None:
    rate = 48000 if name == "a.opus" else RATE
    kind = {"format": "OGG", "subtype": "OPUS"} if name == "a.opus" else {"subtype": subtype}
    soundfile.write(tmp_path / name, speech(rate=rate), rate, **kind)
    heard = read_sound(tmp_path / name, LIMITS).pcm / 32768
    said = speech(rate=RATE)
    assert abs(len(heard) - len(said)) < 0.1 * RATE
    if rate == RATE and name.endswith((".wav", ".flac")):
        assert np.abs(heard - said).max() < error
    else:
        assert np.sqrt(np.square(heard).mean()) == pytest.approx(
            np.sqrt(np.square(said).mean()), rel=0.15
        )


@pytest.mark.parametrize("rate", [8000, 16000, 44100, 48000, 96000])
def test_resampling_keeps_a_tone_and_its_level(tmp_path: Path, rate: int) -> None:
    def tone(rate: int) -> Floats:
        return np.asarray(0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate), np.float32)

    save(tmp_path / "a.wav", tone(rate), rate, "FLOAT")
    heard = read_sound(tmp_path / "a.wav", LIMITS).pcm / 32768
    assert len(heard) == RATE
    middle = slice(RATE // 4, 3 * RATE // 4)
    assert np.abs(heard[middle] - tone(RATE)[middle]).max() < 1e-3


def test_channels_are_mixed_to_their_mean(tmp_path: Path) -> None:
    one, two = speech(seed=1), speech(seed=2)
    save(tmp_path / "a.wav", np.stack([one, two, two], axis=1), subtype="FLOAT")
    sound = read_sound(tmp_path / "a.wav", LIMITS)
    assert np.abs(sound.pcm / 32768 - (one + 2 * two) / 3).max() < 1e-4
    assert sound.channels == 3


def test_samples_beyond_full_scale_are_limited_and_counted(tmp_path: Path) -> None:
    loud = speech()
    loud[5000:5010] = 1.5
    save(tmp_path / "a.wav", loud, subtype="FLOAT")
    sound = read_sound(tmp_path / "a.wav", LIMITS)
    assert (sound.limited, int(sound.pcm.max())) == (10, 32767)


def test_a_header_that_promises_two_gigabytes_takes_no_memory_for_them(tmp_path: Path) -> None:
    save(tmp_path / "a.wav", speech())
    raw = bytearray((tmp_path / "a.wav").read_bytes()[:100])
    raw[40:44] = (2**31 - 1).to_bytes(4, "little")
    (tmp_path / "a.wav").write_bytes(raw)
    sound = read_sound(tmp_path / "a.wav", LIMITS)
    assert len(sound.pcm) == 28
    assert sound.seconds == 28 / RATE


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    with pytest.raises(UnreadableError, match="not a regular file"):
        read_sound(tmp_path / "a.wav", LIMITS)


def test_levels_are_those_of_the_edges_and_of_the_speech(tmp_path: Path) -> None:
    save(tmp_path / "a.wav", np.full(RATE, 0.5, np.float32))
    got = measure(7, read_sound(tmp_path / "a.wav", LIMITS), RATE)
    assert got.index == 7
    levels = (got.start_db, got.end_db, got.speech_db, got.floor_db, got.loudest_db)
    assert levels == (-6.02,) * 5


SHIM = """
import importlib.util, os, signal, sys, time
here = os.path.dirname(__file__)
sys.path.remove(here)
del sys.modules["soundfile"]
import soundfile as real
class SoundFile(real.SoundFile):
    def __init__(self, file, *more, **named):
        name = os.path.basename(os.readlink(f"/proc/self/fd/{file}"))
        if name == "c0003.wav":
            os.kill(os.getpid(), signal.SIGSEGV)
        if name == "c0005.wav":
            time.sleep(600)
        super().__init__(file, *more, **named)
real.SoundFile = SoundFile
sys.modules["soundfile"] = real
"""


def test_clips_that_crash_or_hang_the_decoder_are_named_and_the_others_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "soundfile.py").write_text(SHIM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shim"))
    data = ljspeech(tmp_path / "data", 8)
    manifest = prepared(data, court=CourtConfig(decode_seconds=1.0))
    found = {row["id"]: row["measured"] for row in refused(manifest.folder)}
    assert found == {
        "c0003": "crashed the decoder (SIGSEGV)",
        "c0005": "took longer than 1 s",
    }
    assert len(manifest.table) == 6
