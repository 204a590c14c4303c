"""How long gradients take between two workers on this machine, by how many cross at a time.

    python benchmarks/crossing.py

Legend: N numbers of one worker's gradients.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from myxtts.pipeline import Team

NUMBERS = 32_000_000
PIECES = (250_000, 1_000_000, 4_000_000, 16_000_000, 32_000_000)
SMALL = 1_000
ROUNDS = 7
WORKERS = 2


def main() -> None:
    """Starts two workers; the first one's figures are shown."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    processes = [_started(addresses, index) for index in range(WORKERS)]
    sys.exit(max(process.wait() for process in processes))


def _started(addresses: list[str], index: int) -> subprocess.Popen[bytes]:
    told = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    environment = {**os.environ, "TF_CONFIG": json.dumps(told)}
    command = [sys.executable, __file__, "worker"]
    return subprocess.Popen(command, env=environment)  # noqa: S603


def work() -> None:
    """One worker's part."""
    from myxtts.config import DevicesConfig  # noqa: PLC0415
    from myxtts.devices import open_devices, plan_devices, read_cluster  # noqa: PLC0415

    cluster = read_cluster()
    open_devices(plan_devices(DevicesConfig(emulate=1), []), cluster=cluster)
    import tensorflow as tf  # noqa: PLC0415

    import myxtts.pipeline.team as crossing  # noqa: PLC0415
    from myxtts.pipeline import Team  # noqa: PLC0415

    own = Team(cluster)
    with tf.device(crossing.HOST):
        one_N, small_N = tf.ones([NUMBERS]), tf.ones([SMALL])
    _show(own, f"{SMALL:>10,} numbers", lambda: own.total(small_N))
    for piece in PIECES:
        crossing.PIECE = piece
        _show(own, f"{NUMBERS:>10,} numbers, {piece:>10,} at a time", lambda: own.total(one_N))


def _show(own: "Team", what: str, cross: Callable[[], object]) -> None:
    cross()
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        cross()
        seconds.append(1000 * (time.perf_counter() - begun))
    if own.chief:
        low, high = min(seconds), max(seconds)
        print(f"{what}: {median(seconds):7.1f} ms ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    if "worker" in sys.argv:
        work()
    else:
        main()
