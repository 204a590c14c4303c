"""Builds the parts from a `Config` and runs the loop, stage after stage."""

from myxtts.train.whole import train

__all__ = ["train"]
