"""The guides' command, kept: `python validate_dual_gpu_pipeline.py …` is `myxtts validate …`."""

import sys

try:
    from myxtts.cli import run_as
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}: run `make install`, then `. .venv/bin/activate`")

run_as("validate")
