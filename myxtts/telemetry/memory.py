"""What each device and each card holds at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

import psutil

from myxtts.devices import MB, DevicePlan, GpuReading, allocator_bytes, read_gpu
from myxtts.telemetry.record import Recorder

HOST = ""
"""The host's own memory, as the recorder names it."""


_process = psutil.Process()


@dataclass(frozen=True)
class Memory:
    """Bytes by device: in each GPU's allocator and, for the host, resident."""

    used: Mapping[str, int]
    peaks: Mapping[str, int]


def sample_memory(plan: DevicePlan) -> Memory:
    """What is held now; cheap enough for every step, and no device is waited for."""
    resident = int(_process.memory_info().rss)
    used, peaks = {HOST: resident}, {HOST: resident}
    for device in plan.devices:
        allocated = allocator_bytes(device)
        if allocated:
            used[device], peaks[device] = allocated
    return Memory(used, peaks)


def free_memory(plan: DevicePlan) -> dict[str, int]:
    """Bytes that are still to be had, where there is a limit that is known."""
    free = {HOST: int(psutil.virtual_memory().available)}
    for device, cap_mb in zip(plan.devices, plan.caps_mb, strict=False):
        allocated = allocator_bytes(device)
        if allocated:
            free[device] = max(0, cap_mb * MB - allocated[0])
    return free


def write_memory(
    recorder: Recorder, memory: Memory, plan: DevicePlan, nvml: ModuleType | None
) -> None:
    """One line for each device, and NVML's figures for each card where it is there."""
    at = round(recorder.now(), 7)
    for device, held in memory.used.items():
        peak = memory.peaks[device]
        recorder.write({"kind": "memory", "device": device, "at": at, "bytes": held, "peak": peak})
    if nvml:
        for device, reading in read_cards(plan, nvml).items():
            recorder.write({"kind": "gpu", "device": device, "at": at, **vars(reading)})


def read_cards(plan: DevicePlan, nvml: ModuleType) -> dict[str, GpuReading]:
    """NVML's figures for each device's card that gives them."""
    cards = {device: plan.gpu_of(device) for device in plan.devices}
    readings = {
        device: read_gpu(nvml, card.uuid) for device, card in cards.items() if card and card.uuid
    }
    return {device: reading for device, reading in readings.items() if reading}
