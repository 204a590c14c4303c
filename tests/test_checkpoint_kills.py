"""Killed at random lines and moments, a run goes on from its checkpoints as if it had not been."""

import subprocess
import sys
from pathlib import Path

import pytest

VICTIM = Path(__file__).with_name("checkpoint_victim.py")
DEATHS = 40
CAMPAIGN = [pytest.param(seed, marks=[pytest.mark.campaign] if seed else []) for seed in range(10)]


@pytest.mark.parametrize("seed", CAMPAIGN)
def test_a_killed_run_goes_on_bit_for_bit(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, str(VICTIM), str(tmp_path), str(seed), str(DEATHS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    reached, *left = done.stdout.split()
    assert int(reached) > DEATHS // 4
    assert f"step-{int(reached):08d}" in left
    assert {name for name in left if not name.startswith("step-")} == {".lock", "best.json"}
    assert len(left) <= 2 + 3  # The lock, the pointer, two newest, and the best.
