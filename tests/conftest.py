"""Splits the CPU into logical devices, so that placement is tested without a GPU."""

import os

import pytest

from myxtts.config import DevicesConfig
from myxtts.devices import DevicePlan, open_devices, plan_devices

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

EMULATED = DevicesConfig(emulate=4)


@pytest.fixture(scope="session", autouse=True)
def plan() -> DevicePlan:
    """Data on /CPU:0, model on /CPU:1, and two more for tests with several model devices."""
    split = plan_devices(EMULATED, [])
    open_devices(split)
    return split
