"""Trainings killed at random moments, also while they save: each goes on bit-same by itself."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from training import TINY, corpus

from myxtts.checkpoint import find

KILLS = 30
LINES = 30
"""Of a whole run's output after its shapes are compiled, about: a death comes within so many."""


def command(data: Path, runs: Path) -> list[str]:
    """Both stages, a checkpoint at every second step, whatever lies there gone on from."""
    settings = TINY | {"training.save_every": 2, "training.log_every": 1, "training.keep": 2}
    given = [f"{key}={yaml.safe_dump(value).splitlines()[0]}" for key, value in settings.items()]
    program = "import sys; from myxtts.cli import main; sys.exit(main())"
    where = ["--train-data", str(data), "--emulate", "2", "--resume", "auto"]
    return [sys.executable, "-c", program, "train", *where, *given, f"telemetry.runs={runs}"]


def arrays(run: Path) -> dict[str, bytes]:
    """All that both stages' last checkpoints hold."""
    found: dict[str, bytes] = {}
    for stage in ("dvae", "gpt"):
        stored = find(run / stage, lambda _line: None)
        for group in stored.groups:
            found |= {f"{stage}/{group}/{n}": a.tobytes() for n, a in stored.arrays(group)}
    return found


def live(data: Path, runs: Path, chance: random.Random | None) -> bool:
    """One start, which may be killed after some line of its output; whether it came to its end."""
    child = subprocess.Popen(
        command(data, runs), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert child.stdout is not None
    left = chance.randrange(LINES) if chance else 10**9
    said = []
    for line in child.stdout:
        said.append(line)
        left -= "step " in line or "compiling" in line
        if left < 0 and chance:
            time.sleep(chance.random() * 0.2)  # Into whatever comes next: a step, a save, a stage.
            child.send_signal(signal.SIGKILL)
            break
    child.stdout.close()
    ended = child.wait()
    assert ended in (0, -signal.SIGKILL), "".join(said[-30:])
    return ended == 0


@pytest.mark.campaign
@pytest.mark.timeout(7200)
def test_thirty_kills_change_no_bit_and_need_no_hands(tmp_path: Path) -> None:
    data = corpus(tmp_path / "clips")
    assert live(data, tmp_path / "straight", None)
    (straight,) = (tmp_path / "straight").iterdir()
    wanted = arrays(straight)
    chance, kills, run = random.Random(7), 0, 0  # noqa: S311
    while kills < KILLS:
        run += 1
        while not live(data, tmp_path / f"run-{run}", chance if kills < KILLS else None):
            kills += 1
        # A death before anything was begun leaves an empty folder behind.
        (folder,) = (tmp_path / f"run-{run}").glob("*/gpt/..")
        assert arrays(folder) == wanted, f"run {run}, after {kills} kills"
    assert kills >= KILLS
