"""Two real processes on loopback: one global batch, one writer, and an end that is told."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from clips import save, speech
from training import config_for, trained

from myxtts.checkpoint import find
from myxtts.config import to_yaml
from myxtts.devices import DevicePlan
from myxtts.telemetry.record import FILE, read_events

STEPS = 4
PLAIN = {
    "training.stage": "dvae",
    "training.max_steps": STEPS,
    "stages.dvae.steps": 100_000,
    "training.save_every": 2,
    "training.validate_every": 2,
    "data.validation_share": 0.2,
    "data.num_workers": 1,
    # Nothing random in a row: its number would depend on where in its batch a clip stands.
    "stages.dvae.crop_frames": 96,
    "stages.dvae.plain_steps": STEPS + 1,
}
COMMAND = "import sys; from myxtts.cli.commands import main; sys.exit(main())"
ENDED_SECONDS = 60.0
"""A dead worker is noticed within some ten; the rest is for a busy machine."""

Books = list[dict[str, object]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips of one length, so that the mean over workers is the mean over all their frames."""
    root = tmp_path_factory.mktemp("workers") / "clips"
    lines = []
    for number in range(30):
        save(root / "wavs" / f"c{number:03d}.wav", speech(0.8, number))
        lines.append(f"c{number:03d}|red house|red house\n")
    (root / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def one(data: Path, plan: DevicePlan) -> Path:
    """One process, and four clips in a batch."""
    return trained(config_for(data, **PLAIN), plan)


@pytest.fixture(scope="module")
def two(data: Path, one: Path) -> Path:
    """Two workers, and two clips in the batch of each."""
    runs = one.parent.parent / "runs of two"
    with workers(data, runs) as processes:
        said = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(said)
    (run,) = runs.iterdir()
    return run


@contextmanager
def workers(data: Path, runs: Path, *flags: str) -> Iterator[list[subprocess.Popen[str]]]:
    """The command on two machines that are this one."""
    about = {"data.batch_size": 2, "telemetry.runs": str(runs)}
    file = runs.with_suffix(".yaml")
    file.write_text(to_yaml(config_for(data, **{**PLAIN, **about})), encoding="utf-8")
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    command = [sys.executable, "-c", COMMAND, "train", "--config", str(file), "--emulate", "2"]
    processes = [start([*command, *flags], addresses, index) for index in range(2)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def start(command: list[str], addresses: list[str], index: int) -> subprocess.Popen[str]:
    task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    return subprocess.Popen(
        command,
        env={**os.environ, "TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def books(folder: Path, kind: str) -> Books:
    files = sorted(folder.glob(f"*/{FILE}"))
    return [event for file in files for event in read_events(file) if event["kind"] == kind]


def losses(folder: Path) -> list[float]:
    return [event["values"]["loss"] for event in books(folder, "results")]  # type: ignore[index]


def test_two_workers_have_the_losses_of_one_process_with_the_same_clips(
    one: Path, two: Path
) -> None:
    alone, together = losses(one / "dvae"), losses(two / "dvae")
    assert len(alone) == STEPS
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    assert losses(two / "dvae" / "worker-1") == together


def test_they_judge_the_same_clips_together(one: Path, two: Path) -> None:
    alone, chief, other = (
        [event["validation_loss"] for event in books(folder, "validation")]
        for folder in (one / "dvae", two / "dvae", two / "dvae" / "worker-1")
    )
    assert len(alone) == 2
    np.testing.assert_allclose(chief, alone, rtol=1e-5)  # type: ignore[arg-type]
    assert other == chief


def test_every_worker_has_the_same_bits_and_only_the_chief_writes_them(two: Path) -> None:
    chief, other = (
        [(event["step"], event["digest"]) for event in books(folder, "workers")]
        for folder in (two / "dvae", two / "dvae" / "worker-1")
    )
    assert [step for step, _ in chief] == [2, 4]
    assert other == chief
    assert find(two / "dvae", lambda _line: None).record.step == STEPS
    kept = [path.name for path in (two / "dvae" / "worker-1").glob("*/*")]
    assert sorted(kept) == ["config.yaml", FILE]


@pytest.mark.parametrize("dead", [0, pytest.param(1, marks=pytest.mark.campaign)])
def test_a_worker_that_dies_ends_the_other_and_the_run_goes_on(
    dead: int, data: Path, two: Path
) -> None:
    # The chief's end is noticed at once, another's only by its heartbeat.
    saved = find(two / "dvae", lambda _line: None).record.step
    before = len(books(two / "dvae", "workers"))
    goes_on = ("--resume", "auto", "training.max_steps=100000")
    with workers(data, two.parent, *goes_on) as processes:
        left = processes[1 - dead]
        wait_for_saves(two / "dvae", before + 2, left)
        processes[dead].send_signal(signal.SIGKILL)
        said = left.communicate(timeout=ENDED_SECONDS)[0]
    assert left.returncode == 1
    assert f"worker {1 - dead} can go on no further without worker {dead} (127.0.0.1:" in said
    assert "--resume auto" in said
    assert "Traceback" not in said
    # With the codebook, which began amid vectors of both.
    after = books(two / "dvae", "workers")[before:]
    assert [event["step"] for event in after][:2] == [saved + 2, saved + 4]
    assert not any(event["unlike"] for event in after)


def wait_for_saves(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while len(books(folder, "workers")) < count:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.2)
