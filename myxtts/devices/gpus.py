"""What NVML and the driver know of the cards, read without starting TensorFlow.

Legend: mb is MiB, as in the guides' flags; an index counts the cards that
CUDA_VISIBLE_DEVICES leaves visible, in PCI bus order where it says nothing.
"""

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

MB = 1024 * 1024


@dataclass(frozen=True)
class Gpu:
    """One visible card; what NVML does not tell is None."""

    index: int
    cuda_id: str
    """What CUDA_VISIBLE_DEVICES must hold to name this card."""
    name: str | None = None
    uuid: str | None = None
    total_mb: int | None = None
    free_mb: int | None = field(default=None, compare=False)
    """At this moment: the card is the same when some of it is taken."""


@dataclass(frozen=True)
class GpuReading:
    """NVML's own figures for one card at one moment; None is what this card does not report."""

    utilisation_percent: int | None
    used_mb: int | None
    power_watts: float | None
    clock_mhz: int | None


@contextlib.contextmanager
def open_nvml() -> Iterator[ModuleType | None]:
    """NVML, or None where there is no driver to ask."""
    import pynvml  # noqa: PLC0415  Half of what `--help` may cost.

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def list_gpus(environment: Mapping[str, str] = os.environ) -> list[Gpu]:
    """The cards this process may use, numbered as `--data-gpu` counts them."""
    with open_nvml() as nvml:
        # Without NVML (Jetson, some containers) the device files still tell how many there are.
        cards = nvml_gpus(nvml) if nvml else _device_files()
    return visible_gpus(cards, environment.get("CUDA_VISIBLE_DEVICES"))


def read_gpu(nvml: ModuleType, uuid: str) -> GpuReading | None:
    """NVML's figures for a card, or None for one that it does not know."""
    handle = _ask(nvml, nvml.nvmlDeviceGetHandleByUUID, uuid)
    if handle is None:
        return None
    utilisation = _ask(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    milliwatts = _ask(nvml, nvml.nvmlDeviceGetPowerUsage, handle)
    return GpuReading(
        utilisation_percent=utilisation and utilisation.gpu,
        used_mb=memory and memory.used // MB,
        power_watts=milliwatts and milliwatts / 1000,
        clock_mhz=_ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
    )


def _ask(nvml: ModuleType, call: Callable[..., Any], *arguments: Any) -> Any:
    """One figure, or None: cards differ in what they report, and some share the host's memory."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


def cuda_uuid(ordinal: int) -> str | None:
    """The UUID that the CUDA driver gives for this process's device `ordinal`."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    if (
        cuda.cuInit(0)
        or cuda.cuDeviceGet(ctypes.byref(device), ordinal)
        or cuda.cuDeviceGetUuid_v2(raw, device)
    ):
        return None
    digits = bytes(raw).hex()
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "GPU-" + "-".join(groups)


def nvml_gpus(nvml: ModuleType) -> list[Gpu]:
    """Every card of the machine, in PCI bus order."""
    gpus = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
        memory = handle and _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
        gpus.append(
            Gpu(
                index=index,
                cuda_id=str(index),
                name=handle and _ask(nvml, nvml.nvmlDeviceGetName, handle),
                uuid=handle and _ask(nvml, nvml.nvmlDeviceGetUUID, handle),
                total_mb=memory and memory.total // MB,
                free_mb=memory and memory.free // MB,
            )
        )
    return gpus


def _device_files() -> list[Gpu]:
    numbers = sorted(
        int(path.name.removeprefix("nvidia")) for path in Path("/dev").glob("nvidia[0-9]*")
    )
    return [Gpu(index=index, cuda_id=str(index)) for index in range(len(numbers))]


def visible_gpus(cards: list[Gpu], asked: str | None) -> list[Gpu]:
    """Applies CUDA_VISIBLE_DEVICES as CUDA does: its list ends at the first unknown entry."""
    if asked is None:
        return cards
    visible: list[Gpu] = []
    for entry in (part.strip() for part in asked.split(",")):
        # A slice of a card (MIG) has no index, and NVML's figures are the whole card's.
        unseen = Gpu(-1, entry) if entry.startswith("MIG-") else None
        card = next((c for c in cards if _names(entry, c)), unseen)
        if card is None:
            break
        visible.append(Gpu(len(visible), entry, card.name, card.uuid, card.total_mb, card.free_mb))
    return visible


def _names(entry: str, card: Gpu) -> bool:
    if entry.startswith("GPU-"):
        return bool(card.uuid) and str(card.uuid).startswith(entry)
    return entry == card.cuda_id
