"""A process that decodes: a crash or a hang of the decoder ends it and nothing else.

It announces every clip before it opens it, so that whoever waits knows which one was the end.
"""

import resource
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from myxtts.decode.chunk import Job, decode_chunk

MEMORY = 2 << 30
"""Bytes that decoding may take beyond what the process begins with; a header may ask for more."""


def serve(connection: Connection) -> None:
    """Does one job after another until the other side hangs up."""
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_do(job, connection))


def _do(job: Job, connection: Connection) -> tuple[str, int, str]:
    def announce(index: int) -> None:
        # SIGALRM ends a process that does not handle it, even inside libsndfile.
        signal.setitimer(signal.ITIMER_REAL, job.limits.seconds_per_clip)
        connection.send(("clip", index, ""))

    try:
        decode_chunk(job, announce)
    except OSError as error:
        return "failed", error.errno or 0, error.strerror or str(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "done", len(job.clips), ""


def _cap_memory() -> None:
    with Path("/proc/self/statm").open(encoding="ascii") as pages:
        begun = int(pages.read().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = begun + MEMORY
    if most == resource.RLIM_INFINITY or wanted < most:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _cap_memory()
    try:
        serve(Connection(int(sys.argv[1])))
    except (BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        sys.exit(1)  # Whoever waited is gone.
