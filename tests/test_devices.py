"""The device plan: what is asked for is got, or one clear error with the command that works."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from myxtts.config import DevicesConfig
from myxtts.devices import (
    DeviceError,
    DevicePlan,
    Gpu,
    GpuReading,
    list_gpus,
    open_devices,
    optimal_limits,
    plan_devices,
    prove_devices,
    read_gpu,
)
from myxtts.devices import opening as opening_module
from myxtts.devices.errors import amend
from myxtts.devices.gpus import nvml_gpus, visible_gpus


def cards(count: int, total_mb: int = 24564, free_mb: int = 24000) -> list[Gpu]:
    return [Gpu(i, str(i), "RTX", f"GPU-{i}{i}{i}", total_mb, free_mb) for i in range(count)]


def planned(gpus: int | Sequence[Gpu] = 4, **asked: Any) -> DevicePlan:
    present = cards(gpus) if isinstance(gpus, int) else gpus
    return plan_devices(DevicesConfig(**asked), present)


@pytest.mark.parametrize(("data", "model"), [(0, 1), (1, 0), (2, 3), (1, 3), (3, 0)])
def test_data_is_gpu_0_and_model_gpu_1_whatever_the_indices(data: int, model: int) -> None:
    plan = planned(data_gpu=data, model_gpu=model)
    assert (plan.data, plan.models) == ("/GPU:0", ("/GPU:1",))
    assert [gpu.index for gpu in plan.gpus] == [data, model]


def test_cuda_sees_the_cards_in_role_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    opening_module.set_environment(planned(data_gpu=2, model_gpu=(3, 0)))
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3,0"
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_indices_count_within_the_users_own_visible_devices() -> None:
    shown = visible_gpus(cards(4), "3,1")
    plan = planned(shown, data_gpu=1, model_gpu=0)
    assert [gpu.cuda_id for gpu in plan.gpus] == ["1", "3"]


@pytest.mark.parametrize(("shown", "ids"), [(None, "012"), ("", ""), ("-1", ""), ("2,9,0", "2")])
def test_visible_devices_end_where_cuda_ends_them(shown: str | None, ids: str) -> None:
    assert "".join(gpu.cuda_id for gpu in visible_gpus(cards(3), shown)) == ids


def test_a_slice_of_a_card_is_taken_as_it_is_named() -> None:
    (only,) = visible_gpus(cards(2), "MIG-77aa")
    assert (only.cuda_id, only.uuid, only.free_mb) == ("MIG-77aa", None, None)


class Grudging:
    """An NVML whose card reports its clock and nothing else, as some do."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        pass

    def __getattr__(self, name: str) -> Any:
        def call(*_arguments: object) -> object:
            if name in ("nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByIndex"):
                return "handle"
            if name in ("nvmlDeviceGetCount", "nvmlDeviceGetClockInfo"):
                return 1
            raise self.NVMLError

        return call


def test_a_card_that_does_not_report_its_memory_is_still_a_card() -> None:
    nvml: Any = Grudging()
    assert read_gpu(nvml, "GPU-1") == GpuReading(None, None, None, 1)
    (gpu,) = nvml_gpus(nvml)
    assert (gpu.cuda_id, gpu.total_mb) == ("0", None)


def test_a_card_named_by_its_uuid_keeps_that_name() -> None:
    assert [g.cuda_id for g in visible_gpus(cards(3), "GPU-222,GPU-000")] == ["GPU-222", "GPU-000"]


def test_several_model_gpus_follow_the_data_gpu() -> None:
    plan = planned(data_gpu=3, model_gpu=(1, 2, 0))
    assert plan.models == ("/GPU:1", "/GPU:2", "/GPU:3")
    assert [gpu.index for gpu in plan.gpus] == [3, 1, 2, 0]


def test_without_flags_one_gpu_does_both() -> None:
    plan = planned()
    assert (plan.arrangement, plan.devices, len(plan.gpus)) == ("single", ("/GPU:0",), 1)


def test_without_gpus_and_flags_the_cpu_does_both() -> None:
    assert planned(0).devices == ("/CPU:0",)


def test_emulated_devices_carry_the_numbers_of_the_gpus_they_stand_for() -> None:
    plan = planned(0, emulate=4, data_gpu=2, model_gpu=(3, 1))
    assert (plan.data, plan.models) == ("/CPU:2", ("/CPU:3", "/CPU:1"))
    assert planned(0, emulate=2).devices == ("/CPU:0", "/CPU:1")
    assert planned(0, emulate=1).devices == ("/CPU:0",)


def test_one_isolated_card_is_split_into_two_capped_halves() -> None:
    plan = planned(
        1, data_gpu=0, model_gpu=0, memory_isolation=True, data_gpu_memory=6000,
        model_gpu_memory=16000,
    )  # fmt: skip
    assert (plan.data, plan.models, plan.caps_mb) == ("/GPU:0", ("/GPU:1",), (6000, 16000))
    assert plan.halves
    assert plan.gpu_of("/GPU:1") == plan.gpu_of("/GPU:0")


def test_automatic_limits_are_fractions_of_what_is_really_free() -> None:
    (card,) = cards(1, free_mb=20512)
    assert optimal_limits(card, card) == (6600, 13400)
    plan = planned(
        [card], data_gpu=0, model_gpu=0, memory_isolation=True, data_gpu_memory="auto",
        model_gpu_memory="auto",
    )  # fmt: skip
    assert plan.caps_mb == (6600, 13400)


REFUSALS: list[tuple[int, dict[str, Any], str, str]] = [
    (1, {"data_gpu": 0, "model_gpu": 1}, "requires at least 2 GPUs; 1 found", "--emulate 2"),
    (0, {"data_gpu": 0, "model_gpu": 1}, "requires at least 2 GPUs; 0 found", "myxtts train"),
    (2, {"data_gpu": 0, "model_gpu": (1, 2)}, "at least 3 GPUs; 2 found", "--model-gpu 1"),
    (2, {"data_gpu": -1, "model_gpu": 1}, "--data-gpu -1: GPUs are numbered", "--data-gpu 0"),
    (2, {"data_gpu": 0, "model_gpu": 7}, "--model-gpu 7: there is no such GPU", "--model-gpu 1"),
    (2, {"data_gpu": 0}, "--data-gpu without --model-gpu", "--model-gpu 1"),
    (2, {"model_gpu": 0}, "--model-gpu without --data-gpu", "--data-gpu 1"),
    (2, {"data_gpu": 1, "model_gpu": 1}, "GPU 1 is asked for as data and", "--model-gpu 0"),
    (1, {"data_gpu": 0, "model_gpu": 0}, "both only alone and with", "--enable-memory-isolation"),
    (3, {"data_gpu": 0, "model_gpu": (1, 1)}, "names GPU 1 twice", "--model-gpu 1"),
    (3, {"data_gpu": 0, "model_gpu": (1, 0)}, "GPU 0 is asked for as data and", "--model-gpu"),
    (2, {"arrangement": "single", "data_gpu": 0, "model_gpu": 1}, "runs on one GPU", "split"),
    (1, {"arrangement": "split"}, "requires at least 2 GPUs; 1 found", "--emulate 2"),
    (0, {"arrangement": "single", "model_gpu": 0}, "there is no such GPU; 0 GPUs", "myxtts train"),
    (0, {"memory_isolation": True}, "memory isolation needs a GPU", "myxtts train"),
    (0, {"emulate": 2, "memory_isolation": True}, "memory caps need real GPUs", "myxtts train"),
    (0, {"emulate": 2, "data_gpu": 1, "model_gpu": 1}, "asked for as data and", "--model-gpu 0"),
    (0, {"emulate": 2, "data_gpu": 0, "model_gpu": 2}, "2 emulated GPUs found", "--model-gpu 1"),
    (0, {"emulate": 1, "data_gpu": 0, "model_gpu": 1}, "1 found", "--emulate 2"),
]


@pytest.mark.parametrize(("gpus", "asked", "problem", "remedy"), REFUSALS)
def test_what_cannot_be_given_is_refused_with_a_command_that_works(
    gpus: int, asked: dict[str, Any], problem: str, remedy: str
) -> None:
    with pytest.raises(DeviceError) as refused:
        planned(gpus, **asked)
    assert problem in refused.value.problem
    assert remedy in refused.value.remedy
    assert refused.value.exit_code == 2


CAPS = {"data_gpu": 0, "model_gpu": 1, "memory_isolation": True}


@pytest.mark.parametrize(
    ("free", "problem"),
    [(24000, "has 24564 MB in all"), (20000, "20000 MB free; other processes hold 4564")],
)
def test_a_cap_that_does_not_fit_is_refused_with_one_that_does(free: int, problem: str) -> None:
    asked = 30000 if free == 24000 else 22000
    with pytest.raises(DeviceError) as refused:
        planned(cards(2, free_mb=free), **CAPS, model_gpu_memory=asked)
    assert problem in refused.value.problem
    fits = int((free - 512) * 0.67)
    assert f"--model-gpu-memory {fits}" in refused.value.remedy


def test_both_halves_together_must_fit_their_card() -> None:
    with pytest.raises(DeviceError, match=r"--data-gpu-memory 8192 .*--model-gpu-memory 16384"):
        planned(1, data_gpu=0, model_gpu=0, memory_isolation=True)


def test_every_remedy_is_itself_a_plan_that_works() -> None:
    for gpus, asked, _, _ in REFUSALS:
        with pytest.raises(DeviceError) as refused:
            planned(gpus, **asked)
        for fix in refused.value.fixes:
            assert planned(gpus, **amended_settings(asked, fix)).data


def amended_settings(asked: dict[str, Any], fix: Any) -> dict[str, Any]:
    names = {"--enable-memory-isolation": "memory_isolation"}
    settings = dict(asked)
    for flag, value in fix.items():
        name = names.get(flag, flag.removeprefix("--").replace("-", "_"))
        settings.pop(name, None)
        if value is not None:
            settings[name] = value or True
            if name in ("data_gpu", "emulate"):
                settings[name] = int(value)
    return settings


def test_a_remedy_keeps_the_rest_of_the_command_as_it_was_typed() -> None:
    typed = ["myxtts", "train", "--train-data", "my clips", "--data-gpu=0", "--model-gpu", "1"]
    fixed = amend(typed, {"--data-gpu": None, "--model-gpu": "3"})
    assert fixed == "myxtts train --train-data 'my clips' --model-gpu 3"


class FakeTensorFlow:
    """Notes what would be set on a machine with GPUs: there is none to set it on."""

    def __init__(self, gpus: int) -> None:
        self.calls: list[tuple[str, int]] = []
        self.config = self.experimental = self
        self.gpus = [str(i) for i in range(gpus)]

    def list_physical_devices(self, _kind: str) -> list[str]:
        return self.gpus

    def LogicalDeviceConfiguration(self, memory_limit: int) -> int:  # noqa: N802
        return memory_limit

    def set_logical_device_configuration(self, gpu: str, limits: list[int]) -> None:
        self.calls += [(gpu, limit) for limit in limits]

    def set_memory_growth(self, gpu: str, enable: bool) -> None:
        self.calls.append((gpu, int(enable)))


def test_every_gpu_is_either_capped_or_grows_never_both() -> None:
    growing, capped = FakeTensorFlow(2), FakeTensorFlow(2)
    opening_module.configure(growing, planned(data_gpu=1, model_gpu=0))
    opening_module.configure(capped, planned(**CAPS, data_gpu_memory=4096, model_gpu_memory=8192))
    assert growing.calls == [("0", 1), ("1", 1)]
    assert capped.calls == [("0", 4096), ("1", 8192)]


def test_fewer_gpus_in_tensorflow_than_planned_is_an_error_and_no_fallback() -> None:
    with pytest.raises(DeviceError, match="2 GPUs were asked for and TensorFlow sees 0"):
        opening_module.configure(FakeTensorFlow(0), planned(data_gpu=0, model_gpu=1))


def test_both_emulated_roles_are_proven_by_an_op(plan: DevicePlan) -> None:
    assert [(p.role, p.device) for p in prove_devices(plan)] == [
        ("data", "/CPU:0"),
        ("model", "/CPU:1"),
    ]


def test_a_second_plan_in_one_process_is_refused(plan: DevicePlan) -> None:
    open_devices(plan)
    with pytest.raises(DeviceError, match="one plan, one process"):
        open_devices(planned(0, emulate=2, data_gpu=1, model_gpu=0))


TOO_LATE = """
import tensorflow as tf
tf.ones([1])
from myxtts.config import DevicesConfig
from myxtts.devices import DeviceError, open_devices, plan_devices
try:
    open_devices(plan_devices(DevicesConfig(emulate=2), []))
except DeviceError as error:
    print(error.problem)
"""


def test_a_tensorflow_that_has_started_is_a_clear_error() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TOO_LATE], check=False, capture_output=True, text=True
    )
    assert "TensorFlow had already started" in ran.stdout


def test_without_a_driver_there_are_no_gpus_and_no_error() -> None:
    assert list_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []
