"""The guides' command, kept: `python train_main.py …` is `myxtts train …`."""

import sys

try:
    from myxtts.cli import run_as
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}: run `make install`, then `. .venv/bin/activate`")

run_as("train")
