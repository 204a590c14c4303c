"""Standard output that is full, gone or closed ends a command clearly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MYXTTS = [sys.executable, "-c", "import sys; from myxtts.cli import main; sys.exit(main())"]
# Typer's own printing, more than a buffer, and a line that is flushed at once.
COMMANDS = ["--help", "config schema", "text سلام --language fa"]
FULL = Path("/dev/full")


def ended(command: str, stdout: int | None, shell: str = "") -> tuple[int, str]:
    words = [*MYXTTS, *command.split()]
    # The shell closes what it is told to before Python starts.
    closing = ["sh", "-c", f'exec "$@" {shell}', "sh", *words] if shell else words
    ran = subprocess.run(
        closing, check=False, stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8"
    )
    return ran.returncode, ran.stderr


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_output_is_told_in_two_lines(command: str) -> None:
    with FULL.open("w") as full:
        code, told = ended(command, full.fileno())
    assert code == 1
    assert told.count("stopped: standard output cannot be written (No space left on device)") == 1
    assert "Traceback" not in told
    assert "Exception ignored" not in told


def test_a_reader_that_has_gone_is_told_and_not_a_traceback() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    code, told = ended("config schema", theirs)
    os.close(theirs)
    assert (code, "Traceback" in told) == (1, False)
    assert "standard output cannot be written (Broken pipe)" in told


def test_a_closed_output_hears_nothing_and_nothing_fails() -> None:
    code, told = ended("config show", None, ">&-")
    assert (code, "Traceback" in told) == (0, False), told
