"""Preparing as a whole: the same bytes again, nothing done twice, nothing lost by a kill."""

import fcntl
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from clips import beside, contents, ljspeech, prepared, refused, rules, save, speech

from myxtts.config import CourtConfig
from myxtts.errors import UserError
from myxtts.manifest import read_manifest

MYXTTS = [sys.executable, "-c", "import sys; from myxtts.cli import main; sys.exit(main())"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return ljspeech(tmp_path / "data", 70)


def command(data: Path, *more: str) -> list[str]:
    out = str(beside(data))
    return [
        *MYXTTS,
        "prepare",
        str(data),
        "--out",
        out,
        "--language",
        "en",
        "data.shard_mb=1",
        *more,
    ]


def test_the_bytes_do_not_depend_on_the_number_of_workers(data: Path, tmp_path: Path) -> None:
    (data / "wavs/c0007.wav").write_bytes(b"RIFF")
    one = contents(prepared(data, tmp_path / "one", workers=1).folder)
    three = contents(prepared(data, tmp_path / "three", workers=3).folder)
    assert one == three
    assert set(one) >= {"manifest.parquet", "shard-00000.pcm", "shard-00001.pcm", "summary.json"}


def test_a_second_run_on_unchanged_data_does_nothing(data: Path) -> None:
    folder = prepared(data).folder
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    folder.chmod(0o500)
    said: list[str] = []
    prepared(data, said=said)
    folder.chmod(0o700)
    assert said[-1] == f"{folder}: up to date, nothing to do"
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def add(data: Path) -> None:
    save(data / "wavs/new.wav", speech(0.7, 99))
    with (data / "metadata.csv").open("a") as file:
        file.write("new|A new one.\n")


def change_sound(data: Path) -> None:
    save(data / "wavs/c0003.wav", speech(0.8, 98))


def change_text(data: Path) -> None:
    lines = (data / "metadata.csv").read_text().replace("Sentence 5.", "Another 5.")
    (data / "metadata.csv").write_text(lines)


def remove(data: Path) -> None:
    lines = (data / "metadata.csv").read_text().splitlines(keepends=True)
    (data / "metadata.csv").write_text("".join(lines[:-1]))
    (data / "wavs/c0069.wav").unlink()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (add, "1 clips added, 0 changed, 0 removed"),
        (change_sound, "0 clips added, 1 changed, 0 removed"),
        (change_text, "0 clips added, 1 changed, 0 removed"),
        (remove, "0 clips added, 0 changed, 1 removed"),
    ],
)
def test_what_changed_is_noticed_and_told(
    data: Path, tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    prepared(data)
    change(data)
    said: list[str] = []
    again = prepared(data, said=said)
    assert any(words in line for line in said), said
    assert contents(again.folder) == contents(prepared(data, tmp_path / "fresh").folder)


def test_other_settings_prepare_again_and_their_failure_leaves_the_old_set(data: Path) -> None:
    prepared(data)
    with pytest.raises(UserError, match="70 by the rule short"):
        prepared(data, court=CourtConfig(shortest_seconds=0.7))
    assert len(read_manifest(beside(data)).table) == 70


def test_check_finds_a_clip_that_changed_behind_its_time(data: Path) -> None:
    prepared(data)
    path = data / "wavs/c0004.wav"
    raw, times = bytearray(path.read_bytes()), path.stat()
    raw[5000] ^= 1
    path.write_bytes(raw)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    said: list[str] = []
    prepared(data, said=said)
    assert "nothing to do" in said[-1]
    prepared(data, said=said, check=True)
    assert "--check: wavs/c0004.wav is not what was read" in said
    assert "70 clips prepared" in said[-1]


def test_a_damaged_shard_is_made_again(data: Path) -> None:
    manifest = prepared(data)
    good = contents(manifest.folder)
    with manifest.shard_paths[1].open("r+b") as file:
        file.truncate(10)
    assert contents(prepared(data).folder) == good


def killed_at(data: Path, seconds: float) -> bool:
    """Whether the kill came before the end."""
    process = subprocess.Popen(
        command(data, "--workers", "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def test_a_run_killed_at_any_moment_is_gone_on_with_to_the_same_bytes(
    data: Path, tmp_path: Path
) -> None:
    wanted = contents(prepared(data, tmp_path / "fresh").folder)
    rng, killed = random.Random(0), 0  # noqa: S311
    for _ in range(6):
        killed += killed_at(data, rng.uniform(0.3, 1.2))
        if beside(data).exists():  # Either not there, or whole.
            assert contents(beside(data)) == wanted
            shutil.rmtree(beside(data))
    assert killed > 0
    assert contents(prepared(data).folder) == wanted
    assert not beside(data).with_name("data-prepared.preparing").exists()


class Killed(BaseException):
    """Stands for SIGKILL at a chosen line: nothing may catch it."""


@pytest.mark.parametrize(
    "place", ["listing.jsonl", "000001.jsonl", "shard-00001.pcm", "summary.json"]
)
def test_a_kill_before_any_file_is_renamed_loses_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    wanted = contents(prepared(data, tmp_path / "fresh").folder)
    rename = Path.replace

    def deadly(path: Path, target: Path) -> Path:
        if Path(target).name == place:
            raise Killed
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", deadly)
        if place == "000001.jsonl":  # Written by a worker, which no patch here reaches.
            patched.setattr(
                "myxtts.prepare.job.read_measures", lambda _: (_ for _ in ()).throw(Killed)
            )
        with pytest.raises(Killed):
            prepared(data)
    assert not beside(data).exists()
    said: list[str] = []
    assert contents(prepared(data, said=said).folder) == wanted


@pytest.mark.parametrize("moves", [0, 1])
def test_a_kill_while_an_older_set_is_replaced_leaves_one_of_both(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    prepared(data)
    add(data)
    wanted = contents(prepared(data, tmp_path / "fresh").folder)
    rename = Path.rename
    done: list[Path] = []

    def deadly(path: Path, target: Path) -> Path:
        if len(done) == moves:
            raise Killed
        done.append(path)
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", deadly)
        with pytest.raises(Killed):
            prepared(data)
    assert contents(prepared(data).folder) == wanted


def test_two_prepares_of_one_folder_are_an_error_for_the_second(data: Path) -> None:
    work = data.with_name("data-prepared.preparing")
    work.mkdir()
    with (work / "lock").open("w") as lock:
        lock.write("4711")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match=r"another prepare \(process 4711\) is writing"):
            prepared(data)
    assert len(prepared(data).table) == 70


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("data/out", "lies inside the data folder"),
        ("data", "lies inside the data folder"),
        (".", "holds the data folder"),
        ("file", "is a file"),
        ("full", "was not made by prepare"),
    ],
)
def test_a_place_that_would_mix_files_is_refused(data: Path, out: str, words: str) -> None:
    (data.parent / "file").write_text("")
    (data.parent / "full").mkdir()
    (data.parent / "full" / "novel.txt").write_text("")
    with pytest.raises(UserError, match=words):
        prepared(data, data.parent / out)


def test_a_full_disk_is_told_and_the_same_command_goes_on_afterwards(data: Path) -> None:
    # A limit on the size of files stands for the disk; workers inherit it.
    ran = subprocess.run(
        command(data),
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert ran.returncode == 2, ran.stderr
    assert "cannot be written: File too large" in ran.stderr
    assert "it goes on" in ran.stderr
    assert "Traceback" not in ran.stderr
    said: list[str] = []
    assert len(prepared(data, said=said).table) == 70


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_place_is_told(data: Path) -> None:
    (data.parent / "shut").mkdir(mode=0o500)
    with pytest.raises(UserError, match="cannot be written: Permission denied"):
        prepared(data, data.parent / "shut" / "out")


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is unreadable for root")
def test_clips_and_texts_that_may_not_be_read_are_named(data: Path) -> None:
    (data / "wavs/c0002.wav").chmod(0)
    manifest = prepared(data)
    assert rules(manifest.folder) == {"unreadable": 1}


def test_a_place_below_a_file_is_told(data: Path) -> None:
    (data.parent / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        prepared(data, data.parent / "file" / "out")


def test_links_that_lead_out_of_the_folder_are_refused_unless_they_are_meant(
    data: Path, tmp_path: Path
) -> None:
    shutil.move(data / "wavs", tmp_path / "elsewhere")
    (data / "wavs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="71 by the rule outside"):
        prepared(data)
    assert len(prepared(data, court=CourtConfig(links_outside=True)).table) == 70


def test_a_path_may_be_absolute_if_it_leads_into_the_folder(data: Path) -> None:
    inside, outside = data / "wavs/c0001.wav", data.parent / "x.wav"
    save(outside, speech())
    (data / "list.csv").write_text(f"audio,text\n{inside},One.\n{outside},Two.\n../x.wav,Three.\n")
    manifest = prepared(data / "list.csv", data.parent / "out")
    assert manifest.table["source"].to_pylist() == ["wavs/c0001.wav"]
    assert rules(manifest.folder) == {"outside": 2}


def test_the_command_tells_what_it_did_and_ends_with_0(data: Path) -> None:
    ran = subprocess.run(command(data), check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "read as ljspeech (metadata.csv: id|text|normalised lines)" in ran.stdout
    assert "accepted 70 clips in en, 0.01 hours" in ran.stdout
    assert refused(beside(data)) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--format", "ljspech"], "--format"),
        (["--language", "English"], "--language"),
        (["--workers", "0"], "--workers"),
        (["data.court.off=[loud]"], "data.court.off"),
    ],
)
def test_a_wrong_flag_is_told_without_a_traceback(data: Path, more: list[str], words: str) -> None:
    ran = subprocess.run(command(data, *more), check=False, capture_output=True, text=True)
    assert (ran.returncode, words in ran.stderr, "Traceback" in ran.stderr) == (2, True, False)


def test_ctrl_c_stops_the_decoders_too(data: Path) -> None:
    process = subprocess.Popen(command(data), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    chunks = data.with_name("data-prepared.preparing") / "chunks"
    while not chunks.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait() in (0, 130)
    assert not decoders_of(process.pid)


def decoders_of(parent: int) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(place.parent.name)
    return found
