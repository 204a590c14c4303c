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


Roles = tuple[tuple[int, ...], tuple[int, ...]]
"""The indices of the data cards, and those of the model cards."""
TOGETHER = ("single", "cached", "parallel")
"""Arrangements in which the model devices prepare their batches themselves."""


@dataclass(frozen=True)
class DevicePlan:
    """Says once, for the whole process, which devices are data and which are model."""

    arrangement: str
    """single, split, cached, parallel or hybrid."""
    datas: tuple[str, ...]
    models: tuple[str, ...]
    data_indices: tuple[int, ...] = ()
    model_indices: tuple[int, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    """The cards in role order: CUDA_VISIBLE_DEVICES will hold just these."""
    emulated: int = 0
    """How many logical CPU devices stand for GPUs; 0 when nothing is emulated."""
    caps_mb: tuple[int, ...] = ()
    """One cap for each device in role order, or none at all."""

    @property
    def data(self) -> str:
        """The first data device."""
        return self.datas[0]

    @property
    def apart(self) -> bool:
        """Whether other devices prepare than learn."""
        return not set(self.datas) & set(self.models)

    @property
    def model(self) -> str:
        """The first model device."""
        return self.models[0]

    @property
    def devices(self) -> tuple[str, ...]:
        """Every device once, data first."""
        return tuple(dict.fromkeys((*self.datas, *self.models)))

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
    arrangement = _arrangement(asked)
    roles = _roles(arrangement, asked, pool)
    if roles is None:
        return DevicePlan(arrangement, ("/CPU:0",), ("/CPU:0",))
    _check_present(asked, roles, pool)
    if arrangement not in TOGETHER:
        _check_apart(asked, roles, pool)
        halved = set(roles[0]) & set(roles[1]) and not asked.emulate
        arrangement = "single" if halved else arrangement
    if asked.emulate:
        return _emulated(arrangement, asked.emulate, roles)
    if asked.memory_isolation:
        return _capped(arrangement, asked, roles, gpus)
    return _uncapped(arrangement, roles, gpus)


def _arrangement(asked: DevicesConfig) -> str:
    if asked.arrangement:
        return asked.arrangement
    nothing_named = asked.data_gpu is None and asked.model_gpu is None
    return "single" if nothing_named and (asked.emulate or 0) < 2 else "split"


def _roles(arrangement: str, asked: DevicesConfig, pool: int) -> Roles | None:
    """Which cards do what; None when there is no card and none was asked for."""
    if arrangement in ("split", "hybrid"):
        return _split_roles(arrangement, asked, pool)
    named = tuple(dict.fromkeys((*(asked.data_gpu or ()), *(asked.model_gpu or ()))))
    if arrangement == "single" and len(named) > 1:
        raise DeviceError(
            f"arrangement single runs on one GPU, and {len(named)} are named",
            {"--arrangement": "split"},
            ONE_GPU,
        )
    if not named and not pool:
        if asked.memory_isolation:
            raise DeviceError("memory isolation needs a GPU; 0 GPUs found", ONE_GPU, TWO_EMULATED)
        return None
    all_cards = tuple(range(pool)) if arrangement == "parallel" else (0,)
    cards = named or all_cards
    return cards, cards


def _split_roles(arrangement: str, asked: DevicesConfig, pool: int) -> Roles:
    datas, models = asked.data_gpu, asked.model_gpu
    if asked.emulate or asked.arrangement == arrangement:
        datas = datas or (0,)
        models = models or ((1,) if arrangement == "split" else _others(datas, pool))
    if datas is None or models is None:
        given, missing = (
            ("--data-gpu", "--model-gpu") if models is None else ("--model-gpu", "--data-gpu")
        )
        named = (*(datas or ()), *(models or ()))
        other = next(i for i in range(pool + 1 + len(named)) if i not in named)
        raise DeviceError(
            f"{given} without {missing}: two-device training needs both",
            *([{missing: str(other)}] if other < pool else [TWO_EMULATED]),
            ONE_GPU,
        )
    return datas, models


def _others(datas: tuple[int, ...], pool: int) -> tuple[int, ...]:
    """All cards that are left, and one at least, so that its absence is told."""
    return tuple(i for i in range(max(2, pool)) if i not in datas) or (1,)


def _check_asked(asked: DevicesConfig, pool: int) -> None:
    named = [
        *(("--data-gpu", i) for i in asked.data_gpu or ()),
        *(("--model-gpu", i) for i in asked.model_gpu or ()),
    ]
    for flag, index in named:
        if index < 0:
            raise DeviceError(f"{flag} {index}: GPUs are numbered from 0", *_that_work(pool))
    if asked.emulate and asked.memory_isolation:
        raise DeviceError(
            "memory caps need real GPUs: an emulated one has no memory to cap", UNCAPPED
        )
    if asked.memory_isolation and asked.arrangement in ("cached", "parallel", "hybrid"):
        raise DeviceError(
            f"memory caps keep two roles apart, and in the arrangement {asked.arrangement} "
            "a card has both",
            UNCAPPED,
            {"--arrangement": None},
        )


def _check_present(asked: DevicesConfig, roles: Roles, pool: int) -> None:
    datas, models = roles
    kind = "emulated GPUs" if asked.emulate else "GPUs"
    needed = len({*datas, *models})
    if needed > max(1, pool):
        raise DeviceError(
            f"Multi-GPU requires at least {needed} {kind}; {pool} found", *_that_work(pool)
        )
    flags = [*(("--data-gpu", i) for i in datas), *(("--model-gpu", i) for i in models)]
    for flag, index in flags:
        if index >= pool:
            numbers = f", numbered 0 to {pool - 1}" if pool else ""
            raise DeviceError(
                f"{flag} {index}: there is no such GPU; {pool} {kind} found{numbers}",
                *_that_work(pool),
            )
    for flag, cards in (("--data-gpu", datas), ("--model-gpu", models)):
        if len(set(cards)) < len(cards):
            once = ",".join(str(i) for i in dict.fromkeys(cards))
            twice = next(i for i in cards if cards.count(i) > 1)
            raise DeviceError(f"{flag} names GPU {twice} twice", {flag: once})


def _check_apart(asked: DevicesConfig, roles: Roles, pool: int) -> None:
    """Both roles on one card are allowed only as two capped halves of it."""
    datas, models = roles
    both = [card for card in datas if card in models]
    if not both or (asked.memory_isolation and len(datas) == len(models) == 1):
        return
    free = [str(i) for i in range(pool) if i not in datas]
    other: list[Changes] = []
    if free:
        named = ",".join(str(card) for card in datas)
        other.append({"--data-gpu": named, "--model-gpu": free[0]})
    if asked.emulate:
        other = other or [TWO_EMULATED]
    elif len(datas) == len(models) == 1:
        other.append(HALVES)
    raise DeviceError(
        f"GPU {both[0]} is asked for as data and as model GPU; "
        "one card can be both only alone and with its memory isolated",
        *other,
        ONE_GPU,
    )


def _that_work(pool: int) -> tuple[Changes, ...]:
    return (TWO_GPUS,) if pool >= 2 else ({**ONE_GPU, "--emulate": None}, TWO_EMULATED)


def _emulated(arrangement: str, count: int, roles: Roles) -> DevicePlan:
    datas, models = roles
    # Each logical device keeps the number of the GPU that it stands for.
    return DevicePlan(
        arrangement=arrangement,
        datas=tuple(f"/CPU:{i}" for i in datas),
        models=tuple(f"/CPU:{i}" for i in models),
        data_indices=datas,
        model_indices=models,
        emulated=count,
    )


def _uncapped(arrangement: str, roles: Roles, gpus: Sequence[Gpu]) -> DevicePlan:
    datas, models = roles
    order = list(dict.fromkeys((*datas, *models)))
    return DevicePlan(
        arrangement=arrangement,
        datas=tuple(f"/GPU:{order.index(i)}" for i in datas),
        models=tuple(f"/GPU:{order.index(i)}" for i in models),
        data_indices=datas,
        model_indices=models,
        gpus=tuple(gpus[i] for i in order),
    )


def _capped(
    arrangement: str, asked: DevicesConfig, roles: Roles, gpus: Sequence[Gpu]
) -> DevicePlan:
    """A device for each role, capped; on one card they are its two halves."""
    datas, models = roles
    limits = [
        resolve_caps(
            (asked.data_gpu_memory, asked.model_gpu_memory), gpus[data], [gpus[i] for i in models]
        )
        for data in datas
    ]
    data_mb, model_mb = (min(each) for each in zip(*limits, strict=True))
    demands: dict[Gpu, dict[str, int]] = {}
    for index in datas:
        demands.setdefault(gpus[index], {})["--data-gpu-memory"] = data_mb
    for index in models:
        demands.setdefault(gpus[index], {})["--model-gpu-memory"] = model_mb
    check_caps(demands)
    return DevicePlan(
        arrangement=arrangement,
        datas=tuple(f"/GPU:{i}" for i in range(len(datas))),
        models=tuple(f"/GPU:{len(datas) + i}" for i in range(len(models))),
        data_indices=datas,
        model_indices=models,
        gpus=tuple(demands),
        caps_mb=(*(data_mb for _ in datas), *(model_mb for _ in models)),
    )
