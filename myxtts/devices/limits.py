"""Memory caps: from what is free on the card, and refused where they do not fit."""

from collections.abc import Mapping, Sequence

from myxtts.devices.errors import DeviceError
from myxtts.devices.gpus import Gpu

DATA_FRACTION = 0.33
MODEL_FRACTION = 0.67
CONTEXT_MB = 512
"""What a CUDA context with cuDNN and cuBLAS takes beside TensorFlow's own pool, about."""

Cap = int | str
"""A limit in MiB, or "auto"."""


def optimal_limits(
    data: Gpu,
    model: Gpu,
    data_fraction: float = DATA_FRACTION,
    model_fraction: float = MODEL_FRACTION,
) -> tuple[int, int]:
    """Caps in MiB as fractions of what other processes leave free on each card."""
    return (
        int(_usable_mb(data) * data_fraction),
        int(_usable_mb(model) * model_fraction),
    )


def resolve_caps(asked: tuple[Cap, Cap], data: Gpu, models: Sequence[Gpu]) -> tuple[int, int]:
    """The asked caps in MiB, "auto" filled in from the card with the least free memory."""
    if "auto" not in asked:
        return int(asked[0]), int(asked[1])
    if any(gpu.free_mb is None for gpu in (data, *models)):
        raise DeviceError(
            "a memory cap of auto needs NVML, which does not answer on this machine",
            {"--data-gpu-memory": "8192", "--model-gpu-memory": "16384"},
        )
    fullest = min(models, key=_usable_mb)
    pairs = zip(asked, optimal_limits(data, fullest), strict=True)
    data_mb, model_mb = (best if cap == "auto" else int(cap) for cap, best in pairs)
    return data_mb, model_mb


def check_caps(demands: Mapping[Gpu, Mapping[str, int]]) -> None:
    """Refuses caps that a card cannot give; `demands` holds MiB by card, then by flag."""
    for gpu, caps in demands.items():
        for flag, cap in caps.items():
            if cap <= 0:
                raise DeviceError(
                    f"{flag} {cap}: a cap is a number of MB above 0", _better(demands)
                )
        if gpu.total_mb is None or gpu.free_mb is None:
            continue
        asked = " + ".join(f"{flag} {cap}" for flag, cap in caps.items())
        if sum(caps.values()) > gpu.total_mb:
            problem = f"{asked}: GPU {gpu.index} ({gpu.name}) has {gpu.total_mb} MB in all"
            raise DeviceError(problem, _better(demands))
        if sum(caps.values()) > gpu.free_mb:
            others = gpu.total_mb - gpu.free_mb
            problem = (
                f"{asked}: GPU {gpu.index} ({gpu.name}) has {gpu.free_mb} MB free; "
                f"other processes hold {others} of its {gpu.total_mb} MB"
            )
            raise DeviceError(problem, _better(demands))


def _usable_mb(gpu: Gpu) -> int:
    return max(0, (gpu.free_mb or 0) - CONTEXT_MB)


def _better(demands: Mapping[Gpu, Mapping[str, int]]) -> dict[str, str | None]:
    fractions = {"--data-gpu-memory": DATA_FRACTION, "--model-gpu-memory": MODEL_FRACTION}
    room: dict[str, int] = {}
    for gpu, caps in demands.items():
        for flag in caps:
            fit = int(_usable_mb(gpu) * fractions[flag])
            room[flag] = min(fit, room.get(flag, fit))
    return {flag: str(mb) if mb else None for flag, mb in room.items()}
