"""The guides' command, kept: `python utilities/diagnose_gpu_bottleneck.py …` is `myxtts diagnose …`."""

import sys

try:
    from myxtts.cli import run_as
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}: run `make install`, then `. .venv/bin/activate`")

run_as("diagnose")
