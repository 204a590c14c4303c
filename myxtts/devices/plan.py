"""Which device prepares and which learns: decided before TensorFlow starts, from plain facts.

Legend: an index is what `--data-gpu` and `--model-gpu` take; a device is TensorFlow's
name for it in this process, "/GPU:0". Devices are numbered in role order, data first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from myxtts.config import DevicesConfig
from myxtts.devices.errors import Changes, DeviceError
from myxtts.devices.gpus import Gpu
from myxtts.devices.limits import check_caps, resolve_caps

UNCAPPED: Changes = {
    "--enable-memory-isolation": None,
    "--data-gpu-memory": None,
    "--model-gpu-memory": None,
}
ONE_GPU: Changes = {"--data-gpu": None, "--model-gpu": None, "--arrangement": None, **UNCAPPED}
TWO_GPUS: Changes = {"--data-gpu": "0", "--model-gpu": "1"}
TWO_EMULATED: Changes = {**ONE_GPU, **TWO_GPUS, "--emulate": "2"}

HALVES: Changes = {
    "--enable-memory-isolation": "",
    "--data-gpu-memory": "auto",
    "--model-gpu-memory": "auto",
}

NAMES = {"--enable-memory-isolation": "memory_isolation"}


def plain(text: str) -> int | str:
    """A number where the text is one."""
    return int(text) if text.lstrip("-").isdigit() else text


Roles = tuple[int, tuple[int, ...]]
"""The index of the data card, and those of the model cards."""


@dataclass(frozen=True)
class DevicePlan:
    """Says once, for the whole process, which device is data and which are model."""

    arrangement: str
    data: str
    models: tuple[str, ...]
    data_index: int | None = None
    model_indices: tuple[int, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    """The cards in role order: CUDA_VISIBLE_DEVICES will hold just these."""
    emulated: int = 0
    """How many logical CPU devices stand for GPUs; 0 when nothing is emulated."""
    caps_mb: tuple[int, ...] = ()
    """One cap for each device in role order, or none at all."""

    @property
    def model(self) -> str:
        """The first model device."""
        return self.models[0]

    @property
    def devices(self) -> tuple[str, ...]:
        """Every device once, data first."""
        return tuple(dict.fromkeys((self.data, *self.models)))

    @property
    def halves(self) -> bool:
        """Whether both roles live on one card, each in its own capped half."""
        return len(self.gpus) < len(self.caps_mb)

    def gpu_of(self, device: str) -> Gpu | None:
        """The card behind a device, or None on the CPU."""
        if not self.gpus:
            return None
        return self.gpus[0] if self.halves else self.gpus[self.devices.index(device)]


def plan_devices(asked: DevicesConfig, gpus: Sequence[Gpu]) -> DevicePlan:
    """The plan that gives just what was asked, or a DeviceError; `gpus` are the visible cards."""
    try:
        return _plan(asked, gpus)
    except DeviceError as error:
        raise DeviceError(error.problem, *_that_plan(error.fixes, asked, gpus)) from None


def _that_plan(
    fixes: Sequence[Changes], asked: DevicesConfig, gpus: Sequence[Gpu]
) -> Iterator[Changes]:
    """The fixes that leave no other fault, or the first that any machine can offer."""
    bare: Changes = {**ONE_GPU, "--emulate": None}
    offers = [{**bare, **TWO_GPUS}, bare, TWO_EMULATED]
    good = [fix for fix in fixes if _plans(asked, fix, gpus)]
    yield from good or [fix for fix in offers if _plans(asked, fix, gpus)][:2]


def _plans(asked: DevicesConfig, changes: Changes, gpus: Sequence[Gpu]) -> bool:
    settings: dict[str, object] = asked.model_dump()
    for flag, text in changes.items():
        name = NAMES.get(flag, flag.removeprefix("--").replace("-", "_"))
        settings[name] = DevicesConfig.model_fields[name].default
        if text is not None:
            settings[name] = True if name in NAMES.values() else plain(text)
    try:
        _plan(DevicesConfig.model_validate(settings), gpus)
    except DeviceError:
        return False
    return True


def _plan(asked: DevicesConfig, gpus: Sequence[Gpu]) -> DevicePlan:
    pool = asked.emulate or len(gpus)
    _check_asked(asked, pool)
    roles = _single_roles(asked, pool) if _is_single(asked) else _split_roles(asked, pool)
    if roles is None:
        return DevicePlan("single", "/CPU:0", ("/CPU:0",))
    _check_present(asked, roles, pool)
    if not _is_single(asked):
        _check_apart(asked, roles, pool)
    if asked.emulate:
        return _emulated(asked.emulate, roles)
    return _capped(asked, roles, gpus) if asked.memory_isolation else _uncapped(roles, gpus)


def _is_single(asked: DevicesConfig) -> bool:
    if asked.arrangement:
        return asked.arrangement == "single"
    nothing_named = asked.data_gpu is None and asked.model_gpu is None
    return nothing_named and (asked.emulate or 0) < 2


def _single_roles(asked: DevicesConfig, pool: int) -> Roles | None:
    """One card for both roles; None when there is no card and none was asked for."""
    named = {i for i in (asked.data_gpu, *(asked.model_gpu or ())) if i is not None}
    if len(named) > 1:
        raise DeviceError(
            f"arrangement single runs on one GPU, and {len(named)} are named",
            {"--arrangement": "split"},
            ONE_GPU,
        )
    if not named and not pool:
        if asked.memory_isolation:
            raise DeviceError("memory isolation needs a GPU; 0 GPUs found", ONE_GPU, TWO_EMULATED)
        return None
    index = named.pop() if named else 0
    return index, (index,)


def _split_roles(asked: DevicesConfig, pool: int) -> Roles:
    data, models = asked.data_gpu, asked.model_gpu
    if asked.emulate or asked.arrangement == "split":
        data, models = 0 if data is None else data, models or (1,)
    if data is None or models is None:
        given, missing = (
            ("--data-gpu", "--model-gpu") if models is None else ("--model-gpu", "--data-gpu")
        )
        named = (data, *(models or ()))
        other = next(i for i in range(pool + 1 + len(named)) if i not in named)
        raise DeviceError(
            f"{given} without {missing}: two-device training needs both",
            *([{missing: str(other)}] if other < pool else [TWO_EMULATED]),
            ONE_GPU,
        )
    return data, models


def _check_asked(asked: DevicesConfig, pool: int) -> None:
    named = [("--data-gpu", asked.data_gpu), *(("--model-gpu", i) for i in asked.model_gpu or ())]
    for flag, index in named:
        if index is not None and index < 0:
            raise DeviceError(f"{flag} {index}: GPUs are numbered from 0", *_that_work(pool))
    if asked.emulate and asked.memory_isolation:
        raise DeviceError(
            "memory caps need real GPUs: an emulated one has no memory to cap", UNCAPPED
        )


def _check_present(asked: DevicesConfig, roles: Roles, pool: int) -> None:
    data, models = roles
    kind = "emulated GPUs" if asked.emulate else "GPUs"
    needed = len({data, *models})
    if needed > max(1, pool):
        raise DeviceError(
            f"Multi-GPU requires at least {needed} {kind}; {pool} found", *_that_work(pool)
        )
    for flag, index in (("--data-gpu", data), *(("--model-gpu", i) for i in models)):
        if index >= pool:
            numbers = f", numbered 0 to {pool - 1}" if pool else ""
            raise DeviceError(
                f"{flag} {index}: there is no such GPU; {pool} {kind} found{numbers}",
                *_that_work(pool),
            )
    if len(set(models)) < len(models):
        once = ",".join(str(i) for i in dict.fromkeys(models))
        twice = next(i for i in models if models.count(i) > 1)
        raise DeviceError(f"--model-gpu names GPU {twice} twice", {"--model-gpu": once})


def _check_apart(asked: DevicesConfig, roles: Roles, pool: int) -> None:
    """Both roles on one card are allowed only as two capped halves of it."""
    data, models = roles
    if data not in models or (asked.memory_isolation and len(models) == 1):
        return
    free = [str(i) for i in range(pool) if i != data]
    other: list[Changes] = []
    if free:
        other.append({"--data-gpu": str(data), "--model-gpu": free[0]})
    if asked.emulate:
        other = other or [TWO_EMULATED]
    elif len(models) == 1:
        other.append(HALVES)
    raise DeviceError(
        f"GPU {data} is asked for as data and as model GPU; "
        "one card can be both only alone and with its memory isolated",
        *other,
        ONE_GPU,
    )


def _that_work(pool: int) -> tuple[Changes, ...]:
    return (TWO_GPUS,) if pool >= 2 else ({**ONE_GPU, "--emulate": None}, TWO_EMULATED)


def _emulated(count: int, roles: Roles) -> DevicePlan:
    data, models = roles
    # Each logical device keeps the number of the GPU that it stands for.
    return DevicePlan(
        arrangement="single" if data in models else "split",
        data=f"/CPU:{data}",
        models=tuple(f"/CPU:{i}" for i in models),
        data_index=data,
        model_indices=models,
        emulated=count,
    )


def _uncapped(roles: Roles, gpus: Sequence[Gpu]) -> DevicePlan:
    data, models = roles
    order = list(dict.fromkeys((data, *models)))
    return DevicePlan(
        arrangement="single" if data in models else "split",
        data="/GPU:0",
        models=tuple(f"/GPU:{order.index(i)}" for i in models),
        data_index=data,
        model_indices=models,
        gpus=tuple(gpus[i] for i in order),
    )


def _capped(asked: DevicesConfig, roles: Roles, gpus: Sequence[Gpu]) -> DevicePlan:
    """A device for each role, capped; on one card they are its two halves."""
    data, models = roles
    data_mb, model_mb = resolve_caps(
        (asked.data_gpu_memory, asked.model_gpu_memory), gpus[data], [gpus[i] for i in models]
    )
    demands: dict[Gpu, dict[str, int]] = {gpus[data]: {"--data-gpu-memory": data_mb}}
    for index in models:
        demands.setdefault(gpus[index], {})["--model-gpu-memory"] = model_mb
    check_caps(demands)
    return DevicePlan(
        arrangement="single" if data in models else "split",
        data="/GPU:0",
        models=tuple(f"/GPU:{1 + i}" for i in range(len(models))),
        data_index=data,
        model_indices=models,
        gpus=tuple(demands),
        caps_mb=(data_mb, *(model_mb for _ in models)),
    )
