"""Processes that decode chunks, and what happens when one of them dies.

A clip that ends two processes is named as unreadable; the rest of its chunk is decoded again.
Two, because the first may have been killed for another's sake, on a machine without memory.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

import myxtts
from myxtts.decode import Job
from myxtts.errors import UserError

DEATHS = 2
COMMAND = [sys.executable, "-m", "myxtts.decode.worker"]


class Worker:
    """One decoding process, its job, and the clip it has announced."""

    def __init__(self, log: Path) -> None:
        self.connection, far = Pipe()
        package = Path(myxtts.__file__).parents[1]
        path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH", "")]))
        with log.open("ab") as errors:
            self.process = subprocess.Popen(  # noqa: S603 - Our own program.
                [*COMMAND, str(far.fileno())],
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": path},
                # Ctrl-C is for whoever waits; it then hangs up, and this process ends.
                process_group=0,
            )
        far.close()
        self.job: Job | None = None
        self.clip: int | None = None

    def give(self, job: Job) -> None:
        """Sends a job; a process that died meanwhile is seen when it is waited for."""
        self.job, self.clip = job, None
        try:
            self.connection.send(job)
        except (BrokenPipeError, ConnectionResetError):
            return

    def stop(self) -> int:
        """Ends the process, whatever it does, and says how it ended."""
        self.connection.close()
        self.process.kill()
        return self.process.wait()

    def buried(self, seconds: float) -> str:
        """How a dead process ended, in words."""
        self.connection.close()
        code = self.process.wait()
        if code == -signal.SIGALRM:
            return f"took longer than {seconds:g} s"
        return f"crashed the decoder ({_ending(code)})"


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def decode_all(jobs: Iterable[Job], workers: int, log: Path) -> Iterator[int]:
    """Does every job, in any order; yields the number of clips of each as it is done."""
    crew = Crew(iter(jobs), log)
    try:
        for _ in range(workers):
            crew.hire()
        while crew.busy:
            yield from crew.hear()
    finally:
        for worker in crew.busy.values():
            worker.stop()


class Crew:
    """The processes at work, by the connection that each is heard on."""

    def __init__(self, jobs: Iterator[Job], log: Path) -> None:
        self.jobs = jobs
        self.log = log
        self.busy: dict[Connection, Worker] = {}
        self.deaths: Counter[int | None] = Counter()

    def hire(self, job: Job | None = None) -> None:
        """Starts a process for a job, if there is one."""
        job = job or next(self.jobs, None)
        if job is not None:
            worker = Worker(self.log)
            self.busy[worker.connection] = worker
            worker.give(job)

    def hear(self) -> Iterator[int]:
        """Waits for news and acts on it."""
        for connection in wait(list(self.busy)):
            worker = self.busy[connection]  # type: ignore[index]
            try:
                kind, number, why = worker.connection.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            if kind == "failed":
                raise OSError(number, why)
            if kind == "clip":
                worker.clip = number
                continue
            yield number
            self._next(worker)

    def _next(self, worker: Worker) -> None:
        job = next(self.jobs, None)
        if job is not None:
            worker.give(job)
        else:
            del self.busy[worker.connection]
            worker.stop()

    def _bury(self, worker: Worker) -> None:
        job = worker.job
        assert job is not None, "only processes with a job are waited for"  # noqa: S101
        del self.busy[worker.connection]
        why = worker.buried(job.limits.seconds_per_clip)
        self.deaths[worker.clip] += 1
        if self.deaths[worker.clip] >= DEATHS:
            if worker.clip is None:
                raise UserError(f"the decoding process does not start: {why}\n{self._last()}")
            job = replace(job, failures={**job.failures, worker.clip: why})
        self.hire(job)

    def _last(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-3:])
