"""The first signal ends a run after its step, the second at once, whatever it is doing."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from myxtts.train.signals import AT_ONCE, Stop

BUSY = """
import hashlib
from myxtts.train.signals import Stop
with Stop(print):
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2_000_000_000)  # Deaf to signals, as a step is.
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_is_told_and_the_handlers_come_back(number: int) -> None:
    before, threads = signal.getsignal(number), threading.active_count()
    said: list[str] = []
    with Stop(said.append) as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.asked
    assert len(said) == 1
    assert "again to leave at once" in said[0]
    assert signal.getsignal(number) is before
    assert threading.active_count() == threads


def test_a_second_signal_ends_a_process_that_is_deaf_in_a_step() -> None:
    child = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "busy\n"
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == AT_ONCE
    child.stdout.close()
