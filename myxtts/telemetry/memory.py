"""What each device and each card holds at one moment."""

from types import ModuleType

import psutil

from myxtts.devices import DevicePlan, GpuReading, allocator_bytes, read_gpu
from myxtts.telemetry.record import Recorder

HOST = ""
"""The host's own memory, as the recorder names it."""


def sample_memory(recorder: Recorder, plan: DevicePlan, nvml: ModuleType | None) -> dict[str, int]:
    """Writes and returns the bytes in use: in each allocator and, for the host, resident."""
    in_use = {HOST: int(psutil.Process().memory_info().rss)}
    peaks = dict(in_use)
    for device in plan.devices:
        allocated = allocator_bytes(device)
        if allocated:
            in_use[device], peaks[device] = allocated
    at = round(recorder.now(), 7)
    for device, held in in_use.items():
        recorder.write(
            {"kind": "memory", "device": device, "at": at, "bytes": held, "peak": peaks[device]}
        )
    if nvml:
        _write_readings(recorder, plan, nvml)
    return in_use


def read_cards(plan: DevicePlan, nvml: ModuleType) -> dict[str, GpuReading]:
    """NVML's figures for each device's card that gives them."""
    cards = {device: plan.gpu_of(device) for device in plan.devices}
    readings = {
        device: read_gpu(nvml, card.uuid) for device, card in cards.items() if card and card.uuid
    }
    return {device: reading for device, reading in readings.items() if reading}


def _write_readings(recorder: Recorder, plan: DevicePlan, nvml: ModuleType) -> None:
    at = round(recorder.now(), 7)
    for device, reading in read_cards(plan, nvml).items():
        recorder.write({"kind": "gpu", "device": device, "at": at, **vars(reading)})
