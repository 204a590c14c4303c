"""What disks and people do to checkpoints: each is told by name, and nothing whole is lost."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_checkpoint import flip, save_all, state, steps

from myxtts.checkpoint import (
    BrokenError,
    CheckpointError,
    Goal,
    SaveError,
    Stored,
    find,
    newest,
    open_checkpoints,
)
from myxtts.checkpoint import folder as folder_module
from myxtts.checkpoint import open_stored as open_one
from myxtts.checkpoint import record as record_module
from myxtts.checkpoint import stored as stored_module
from myxtts.checkpoint.record import record_bytes
from myxtts.checkpoint.tensor_file import FileSum, read_tensors

SAVING = """
import resource, shutil, sys
from pathlib import Path
import numpy as np
from myxtts.checkpoint import SaveError, State, newest, open_checkpoints

def arrays(step, count):
    return State(step, {"weights": {"w": np.full(count, step, np.float32)}})

folder = Path(sys.argv[1])
with open_checkpoints(folder, 3) as checkpoints:
    checkpoints.save(arrays(1, 10))
    HINDRANCE
    try:
        checkpoints.save(arrays(2, 10_000_000))
    except SaveError as error:
        print(error.problem, "|", error.remedy)
    left = sorted(path.name for path in folder.iterdir())
    print(left, newest(folder, print).record.step)
"""
ROOMY = (
    "import collections; shutil.disk_usage = lambda _: collections.namedtuple('U', 'free')(9e12)"
)


def hindered(hindrance: str, folder: Path, *before: str) -> str:
    program = SAVING.replace("HINDRANCE", hindrance)
    command = [*before, sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_own_mount(mount: str, hindrance: str, folder: Path) -> str:
    """Runs in a mount namespace of its own: nothing is left mounted."""
    before = ["unshare", "--mount", "sh", "-c", mount + ' && exec "$@"', str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], check=False).returncode:
        pytest.skip("this user may not mount")
    return hindered(hindrance, folder / "checkpoints", *before)


SMALL_DISK = 'mount -t tmpfs -o size=24m none "$0"'
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"'
ONLY_FIRST = "['.lock', 'step-00000001'] 1"


def test_a_file_that_may_not_grow_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    told = hindered(limit, tmp_path)
    assert "step-00000002 cannot be saved (File too large" in told
    assert ONLY_FIRST in told


@pytest.mark.parametrize("moment", [ROOMY, ""], ids=["while-writing", "before"])
def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, moment: str) -> None:
    told = on_own_mount(SMALL_DISK, moment, tmp_path)
    assert "cannot be saved (No space left on device: it needs 56.78 MB, and" in told
    assert "training.keep" in told
    assert ONLY_FIRST in told


def test_a_read_only_folder_is_read_and_not_opened_for_saving(tmp_path: Path) -> None:
    save_all(tmp_path / "checkpoints", state(1))
    look = "from myxtts.checkpoint import *; import sys; from pathlib import Path\n"
    look += "folder = Path(sys.argv[1]); print(find(folder, print).record.step)\n"
    look += "with open_checkpoints(folder, 1): pass"
    mount = ["unshare", "--mount", "sh", "-c", READ_ONLY + ' && exec "$@"', str(tmp_path)]
    command = [*mount, sys.executable, "-c", look, str(tmp_path / "checkpoints")]
    if subprocess.run([*mount, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "1"
    assert "SaveError" in done.stderr
    assert "cannot be saved (Read-only file system)" in done.stderr


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "checkpoints"):
        with pytest.raises(SaveError, match="cannot be saved"), open_checkpoints(folder, 1):
            pytest.fail("a file was taken for a folder")


def test_a_folder_that_vanished_is_told_and_not_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "checkpoints"
    with open_checkpoints(folder, 1) as checkpoints:
        shutil.rmtree(folder.parent)
        with pytest.raises(SaveError) as raised:
            checkpoints.save(state())
    assert "its folder is gone" in raised.value.remedy
    assert not folder.exists()


def test_an_interrupt_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> bytes:
        raise KeyboardInterrupt

    save_all(tmp_path, state(1))
    monkeypatch.setattr(stored_module, "record_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_all(tmp_path, state(2))
    assert [path.name for path in tmp_path.iterdir() if "saving" in path.name] == []
    assert steps(tmp_path) == ["step-00000001"]


def test_what_a_dead_process_left_is_removed_at_the_next_opening(tmp_path: Path) -> None:
    for name in (".saving-step-00000002-77-ab", ".removing-step-00000001", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights.safetensors").touch()
    (tmp_path / ".saving-best.json").touch()
    assert newest(tmp_path, pytest.fail) is None
    save_all(tmp_path, state(3))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".lock", "mine", "step-00000003"]


def test_a_live_run_keeps_its_half_written_folder(tmp_path: Path) -> None:
    partial = tmp_path / ".saving-step-00000002-77-ab"
    opening = (
        "import sys; sys.path.insert(0, sys.argv[2]); from myxtts.checkpoint import folder as f\n"
    )
    opening += "from pathlib import Path; f.LOCK_SECONDS = 0.2\n"
    opening += "with f.open_checkpoints(Path(sys.argv[1]), 1): pass"
    with open_checkpoints(tmp_path, 1):
        partial.mkdir()
        command = [sys.executable, "-c", opening, str(tmp_path), "."]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert f"another run (process {os.getpid()}) is saving to {tmp_path}" in done.stderr
    assert partial.exists()


def test_any_flipped_bit_is_found_or_means_nothing(tmp_path: Path) -> None:
    first, last = save_all(tmp_path, state(1), state(2))
    rng = np.random.default_rng(0)
    for file in sorted(last.folder.iterdir()):
        content, harmless = file.read_bytes(), 0
        for place in rng.choice(len(content), min(len(content), 150), replace=False):
            flip(file, int(place), int(rng.integers(8)))
            told: list[str] = []
            found = newest(tmp_path, told.append)
            assert found in (first, last)
            assert (found == first) == any(str(file) in line for line in told)
            harmless += found == last
            file.write_bytes(content)
        # Only the JSON has places that mean nothing: the white space between its words.
        assert harmless == 0 or file.suffix == ".json"


def test_any_cut_file_is_found(tmp_path: Path) -> None:
    first, last = save_all(tmp_path, state(1), state(2))
    for file in sorted(last.folder.iterdir()):
        content = file.read_bytes()
        end = len(content.rstrip())
        for length in {0, 1, 7, 8, 9, end // 2, end - 1}:
            file.write_bytes(content[:length])
            told: list[str] = []
            assert newest(tmp_path, told.append) == first
            assert [line for line in told if str(file) in line]
        file.write_bytes(content)
    assert newest(tmp_path, pytest.fail) == last


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [None, Path.mkdir, make_fifo])
def test_a_file_that_is_missing_or_another_kind_of_thing_is_found(
    tmp_path: Path, make: Callable[[Path], None] | None
) -> None:
    first, last = save_all(tmp_path, state(1), state(2))
    file = last.folder / "weights.safetensors"
    file.unlink()
    if make:
        make(file)
    told: list[str] = []
    assert newest(tmp_path, told.append) == first
    assert "weights.safetensors" in told[0]


def test_a_broken_checkpoint_that_is_named_is_refused(tmp_path: Path) -> None:
    [saved] = save_all(tmp_path, state(1))
    flip(saved.folder / "optimizer.safetensors", -1)
    with pytest.raises(BrokenError, match=r"optimizer\.safetensors: is not as it was written"):
        find(saved.folder, pytest.fail)


def test_where_all_are_broken_nothing_begins_anew(tmp_path: Path) -> None:
    for saved in save_all(tmp_path, state(1), state(2)):
        flip(saved.folder / "weights.safetensors", -1)
    with pytest.raises(CheckpointError, match="no checkpoint that is whole") as raised:
        newest(tmp_path, pytest.fail)
    assert "step-00000001" in raised.value.problem
    assert "step-00000002" in raised.value.problem


def test_a_broken_checkpoint_is_neither_counted_nor_removed(tmp_path: Path) -> None:
    _, flipped, torn = save_all(tmp_path, *(state(step, -step) for step in (1, 2, 3)))
    flip(flipped.folder / "weights.safetensors", -1)
    (torn.folder / "checkpoint.json").write_bytes(b"")
    told: list[str] = []
    with open_checkpoints(tmp_path, 1, Goal("loss"), told.append) as checkpoints:
        found = checkpoints.newest()
        assert found is not None
        assert found.record.step == 1
        checkpoints.save(state(2))
    assert steps(tmp_path) == [
        *("step-00000001", "step-00000002", "step-00000002-2", "step-00000003")
    ]
    assert len(told) == 2


def test_an_old_checkpoint_that_cannot_be_removed_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(_folder: Path) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(folder_module, "remove", stuck)
    told: list[str] = []
    with open_checkpoints(tmp_path, 1, None, told.append) as checkpoints:
        checkpoints.save(state(1))
        assert checkpoints.save(state(2)).record.step == 2
    assert "cannot be tidied" in told[0]


def test_a_reader_outlives_the_pruning_of_what_it_looks_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = save_all(tmp_path, state(1), state(2))
    checked = Stored.check

    def pruned(stored: Stored) -> None:
        if stored.record.step == 2:
            shutil.rmtree(stored.folder, ignore_errors=True)
        checked(stored)

    monkeypatch.setattr(Stored, "check", pruned)
    assert newest(tmp_path, pytest.fail) == first
    assert not last.folder.exists()


def test_everything_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A kill leaves what the kernel has; only this order outlives a power cut.
    happened: list[str] = []
    sync, rename = os.fsync, Path.rename

    def noted_sync(file: int) -> None:
        happened.append(Path(f"/proc/self/fd/{file}").readlink().name.partition("-")[0])
        sync(file)

    def noted_rename(path: Path, target: Path) -> Path:
        happened.append("renamed")
        return rename(path, target)

    with open_checkpoints(tmp_path / "c", 1) as checkpoints:
        monkeypatch.setattr(os, "fsync", noted_sync)
        monkeypatch.setattr(Path, "rename", noted_rename)
        checkpoints.save(state(1))
    files = ["weights.safetensors", "optimizer.safetensors", "checkpoint.json"]
    assert happened == [*files, ".saving", "renamed", "c"]


def hostile(folder: Path, **changed: Any) -> None:
    """A record whose own sum is right, and whose content no save would write."""
    record = open_one(folder).record
    (folder / "checkpoint.json").write_bytes(record_bytes(replace(record, **changed)))


@pytest.mark.parametrize(
    "changed",
    [
        {"files": {"../../etc/passwd": FileSum(1, "")}},
        {"step": "1"},
        {"serial": -1},
        {"metrics": {"loss": "low"}},
        {"config": None},
        {"saved_at": 5},
    ],
)
def test_a_record_that_no_save_writes_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    [saved] = save_all(tmp_path, state(1))
    hostile(saved.folder, **changed)
    with pytest.raises(BrokenError, match="does not describe a checkpoint"):
        find(saved.folder, pytest.fail)


def test_a_checkpoint_of_a_later_format_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setattr(record_module, "FORMAT", 2)
        save_all(tmp_path, state(1))
    with pytest.raises(CheckpointError, match="of another format than 1"):
        newest(tmp_path, pytest.fail)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [-2, -3], "data_offsets": [0, 24]},
        {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]},
        {"dtype": "F32", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 24]},
        {"dtype": "F32", "shape": [2, 3.0], "data_offsets": [0, 24]},
        {"dtype": "C64", "shape": [3], "data_offsets": [0, 24]},
        {"shape": [2, 3]},
        [],
    ],
)
def test_a_table_that_does_not_describe_its_file_is_refused(tmp_path: Path, entry: Any) -> None:
    head = json.dumps({"w": entry}).encode()
    file = tmp_path / "weights.safetensors"
    file.write_bytes(len(head).to_bytes(8, "little") + head + bytes(24))
    with pytest.raises(BrokenError, match=r"weights\.safetensors: "):
        read_tensors(file)


def test_a_disk_without_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(stored_module, "write_tensors", lambda *_: pytest.fail("it was written"))
    with pytest.raises(SaveError, match=r"it needs 16\.78 MB, and 1\.00 MB are free there"):
        save_all(tmp_path, state(1))
