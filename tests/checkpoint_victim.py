"""A small training run that is killed again and again; run by test_checkpoint_kills.py.

It imports no TensorFlow, so that each life is a fork of some milliseconds.
Legend: the announced step is the last that `save` has returned for, in any life.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import myxtts.checkpoint
from myxtts.checkpoint import Goal, State, Stored, newest, open_checkpoints

ROOM = str(Path(myxtts.checkpoint.__file__).parent)
LINES_OF_A_LIFE = 1700
"""About as many lines of the room open a folder of three checkpoints and save twice."""
LONGEST_DELAY = 0.02
"""Seconds from an announcement to the death; a save takes about five milliseconds."""
KEEP = 2
ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT
Arrays = dict[str, np.ndarray[Any, Any]]


def started() -> Arrays:
    return {"a": np.zeros((3, 5), np.float32), "steps": np.zeros((), np.int64)}


def stepped(arrays: Arrays, step: int) -> Arrays:
    """A step whose result hangs on all steps before it, and on a seed, bit by bit."""
    noise = np.random.default_rng(step).normal(size=(3, 5)).astype(np.float32)
    return {"a": np.sin(arrays["a"] * np.float32(1.3)) + noise, "steps": arrays["steps"] + 1}


def state_at(arrays: Arrays, step: int) -> State:
    return State(
        step=step,
        groups={"weights": {"a": arrays["a"]}, "optimizer": {"steps": arrays["steps"]}},
        facts={"position": {"epoch": step // 7, "index": step % 7}},
        metrics={"loss": float(np.random.default_rng(step).uniform())},
    )


def arrays_of(stored: Stored) -> Arrays:
    return {name: array for group in stored.groups for name, array in stored.arrays(group)}


def train(folder: Path, announce: Callable[[int], None]) -> Iterator[int]:
    """Resumes and goes on for ever; nobody helps it."""
    with open_checkpoints(folder, KEEP, Goal("loss"), _no_word) as checkpoints:
        found = checkpoints.newest()
        step, arrays = (found.record.step, arrays_of(found)) if found else (0, started())
        while True:
            step += 1
            arrays = stepped(arrays, step)
            checkpoints.save(state_at(arrays, step))
            announce(step)
            yield step


def die_at_line(count: int) -> None:
    """Ends this process before it runs the room's line number `count`."""
    left = count

    def on_line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        left -= event == "line"
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return on_line

    def on_call(frame: FrameType, _event: str, _argument: Any) -> Any:
        return on_line if frame.f_code.co_filename.startswith(ROOM) else None

    sys.settrace(on_call)


def live(folder: Path, said: int, lines: int | None) -> None:
    """One life, in a child of its own; `lines` None means that the killer comes from outside."""
    if lines is not None:
        die_at_line(lines)
    for _ in train(folder, lambda step: os.ftruncate(said, step)):
        pass


def end_one_life(folder: Path, said: int, rng: random.Random) -> None:
    """Begins a life and ends it, every other time from outside and after 0 to 3 more steps."""
    from_outside = rng.random() < 0.5
    lines = None if from_outside else rng.randrange(1, LINES_OF_A_LIFE)
    last, more, delay = announced(said), rng.randrange(4), rng.uniform(0, LONGEST_DELAY)
    child = os.fork()
    if child == 0:
        live(folder, said, lines)
    if from_outside:
        # Steps are waited for, not seconds: on a busy machine a life takes its time.
        while announced(said) < last + more and os.waitid(os.P_PID, child, ENDED) is None:
            time.sleep(0.001)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child ended by itself: {status}"
    assert os.WTERMSIG(status) == signal.SIGKILL


def announced(said: int) -> int:
    """The announced step: a file of as many bytes, so that no kill can tear it."""
    return os.fstat(said).st_size


def look(folder: Path, least: int, truth: list[Arrays]) -> None:
    """What is there is whole, at least as new as was announced, and bit for bit what it was."""
    found = newest(folder, _raise) if folder.exists() else None
    if found is None:
        assert least == 0
        return
    step = found.record.step
    assert step >= least
    while len(truth) <= step:
        truth.append(stepped(truth[-1], len(truth)))
    for name, array in arrays_of(found).items():
        assert array.tobytes() == truth[step][name].tobytes()
    assert found.record.facts["position"] == {"epoch": step // 7, "index": step % 7}


def campaign(folder: Path, seed: int, deaths: int) -> None:
    rng, truth = random.Random(seed), [started()]  # noqa: S311
    said = os.open(folder / "announced", os.O_RDWR | os.O_CREAT)
    checkpoints = folder / "checkpoints"
    for _ in range(deaths):
        end_one_life(checkpoints, said, rng)
        look(checkpoints, announced(said), truth)
    reached = next(train(checkpoints, lambda step: os.ftruncate(said, step)))
    look(checkpoints, reached, truth)
    left = sorted(path.name for path in checkpoints.iterdir())
    sys.stdout.write(f"{reached} {' '.join(left)}\n")


def _no_word(_line: str) -> None:
    """The waiting for a lock is no news here."""


def _raise(line: str) -> None:
    raise AssertionError(line)


if __name__ == "__main__":
    campaign(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
