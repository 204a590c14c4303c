"""Several machines: what TF_CONFIG says of them, and the server that joins them.

Legend: a worker is one process on one machine; worker 0 is the chief.
"""

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from myxtts.errors import UserError

VARIABLE = "TF_CONFIG"
JOBS = ("chief", "worker")
EXAMPLE = (
    'write: TF_CONFIG=\'{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, '
    '"task": {"type": "worker", "index": 0}}\'\n'
    "see docs/many-machines.md"
)


@dataclass(frozen=True)
class Cluster:
    """Where all workers are reached, and which of them this process is."""

    addresses: tuple[str, ...]
    """HOST:PORT, the chief's first."""
    index: int

    @property
    def count(self) -> int:
        """How many workers there are."""
        return len(self.addresses)


class _Strategies:
    """Holds what joined the machines: TensorFlow's server ends with it."""

    joined: Any = None


def read_cluster(text: str | None = None) -> Cluster | None:
    """What TF_CONFIG, or this text, says; None where it names one worker at most."""
    text = os.environ.get(VARIABLE) if text is None else text
    if not text:
        return None
    try:
        given = json.loads(text)
    except ValueError as error:
        raise UserError(f"{VARIABLE} is not JSON: {error}", EXAMPLE) from None
    if not isinstance(given, dict):
        raise UserError(f"{VARIABLE} is not an object", EXAMPLE)
    if not given.get("cluster"):
        return None
    jobs = _jobs(given["cluster"])
    addresses = tuple(address for job in JOBS for address in jobs.get(job, ()))
    if len(set(addresses)) < len(addresses):
        raise UserError(f"{VARIABLE} names an address twice: {', '.join(addresses)}", EXAMPLE)
    index = _index(given.get("task"), jobs)
    return Cluster(addresses, index) if len(addresses) > 1 else None


def join(tf: Any, cluster: Cluster) -> None:
    """Starts this worker's server and waits for the others; before TensorFlow's first op."""
    try:
        # Of the strategy only the server is used, and the service that notices a worker's end:
        # docs/decisions/2026-11-19-what-crosses-machines.md
        with _ended_by_ctrl_c():
            _Strategies.joined = tf.distribute.MultiWorkerMirroredStrategy()
    except (
        tf.errors.DeadlineExceededError,
        tf.errors.UnavailableError,
        tf.errors.InternalError,
    ) as error:
        raise UserError(
            f"worker {cluster.index} waited for all of {', '.join(cluster.addresses)} in vain: "
            f"{first_line(error.message)}",
            "start every worker; let their ports through the firewall",
        ) from error
    except tf.errors.UnknownError as error:
        raise UserError(
            f"worker {cluster.index} cannot listen at {cluster.addresses[cluster.index]}: "
            f"{first_line(error.message)}",
            f"end what holds the port, or name another one in {VARIABLE}, on every worker",
        ) from error


@contextlib.contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Python itself would hear of it only when TensorFlow has done waiting."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def first_line(message: str) -> str:
    """What TensorFlow's message begins with, without the name of its own op."""
    return message.rpartition("}} ")[2].partition("\n")[0].strip()


def _jobs(cluster: Any) -> dict[str, list[str]]:
    if not isinstance(cluster, Mapping) or set(cluster) - set(JOBS):
        raise UserError(f"{VARIABLE}: the cluster's jobs are {' and '.join(JOBS)}", EXAMPLE)
    for job, addresses in cluster.items():
        if not isinstance(addresses, list) or not all(_is_address(a) for a in addresses):
            raise UserError(f"{VARIABLE}: the addresses of {job} are not all HOST:PORT", EXAMPLE)
    if len(cluster.get("chief", ())) > 1:
        raise UserError(f"{VARIABLE} names two chiefs", EXAMPLE)
    return dict(cluster)


def _is_address(text: Any) -> bool:
    host, _, port = str(text).rpartition(":")
    return bool(host) and port.isdigit() and 0 < int(port) < 2**16


def _index(task: Any, jobs: Mapping[str, list[str]]) -> int:
    """Where the task stands among all workers."""
    named = task if isinstance(task, Mapping) else {}
    job, index = str(named.get("type")), str(named.get("index"))
    if job not in jobs or not index.isdigit() or int(index) >= len(jobs[job]):
        raise UserError(f"{VARIABLE}: the task {job} {index} is not in the cluster", EXAMPLE)
    return int(index) + (len(jobs.get("chief", ())) if job == "worker" else 0)
