"""The command line: arguments become one call below; `--help` imports no TensorFlow."""

from myxtts.cli.commands import main, run_as

__all__ = ["main", "run_as"]
