"""`myxtts validate`: the guides' five stages, each a real check of the real pipeline code."""

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from myxtts.config import Config
from myxtts.devices import (
    DeviceError,
    DevicePlan,
    Gpu,
    Say,
    count_devices,
    list_gpus,
    open_devices,
    plan_devices,
    prove_devices,
)
from myxtts.errors import UserError
from myxtts.telemetry.verdict import percent

RULE = "=" * 60
STEPS = 12
CLIP_SECONDS = 1.0
BATCH_MB = 8


class CheckFailedError(UserError):
    """Something is not as it was asked for."""

    exit_code = 1


class Checklist:
    """Prints each check as it is made, and remembers whether all went well."""

    def __init__(self, say: Say) -> None:
        self.failed = 0
        self._say = say

    def passed(self, line: str) -> None:
        """A check that went well."""
        self._say(f"   ✅ {line}")

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """One numbered stage; what goes wrong in it is told and counted."""
        self._say(f"\n{title}")
        try:
            yield
        except UserError as error:
            self.failed += 1
            self._say(f"   ❌ {error.problem}")
            for line in error.remedy.splitlines():
                self._say(f"      {line}")


def validate(config: Config, command: Sequence[str], say: Say) -> int:
    """Runs the five stages; 0 when every check passed, else 1."""
    say(f"{RULE}\nDual-GPU Pipeline Validation\n{RULE}")
    checks = Checklist(say)
    plan, refusal = None, None
    with checks.stage("1. Checking prerequisites..."):
        gpus = list_gpus()
        _check_driver(config, gpus, checks)
        checks.passed(f"TensorFlow installed ({_tensorflow_version()})")
        # Its own view comes with the devices, and what is wrong with those belongs to stage 2.
        plan, refusal = _try_to_open(config, gpus, command)
        if plan:
            kind = "emulated GPUs" if plan.emulated else "GPUs" if plan.gpus else "CPU"
            checks.passed(f"TensorFlow can see {count_devices(plan)} {kind}")
    with checks.stage("2. Validating device placement configuration..."):
        if refusal:
            raise refusal
        if plan:
            _check_placement(plan, checks)
    if plan and not checks.failed:
        models = ", ".join(device.removeprefix("/") for device in plan.models)
        for title, check in STAGES:
            with checks.stage(title.format(models=models)):
                check(config, plan, checks)
    passed = not checks.failed
    end = "🎉 All validation checks passed!" if passed else "❌ Validation failed: see above"
    say(f"\n{RULE}\n{end}\n{RULE}")
    return 0 if passed else 1


def _try_to_open(
    config: Config, gpus: list[Gpu], command: Sequence[str]
) -> tuple[DevicePlan | None, DeviceError | None]:
    try:
        plan = plan_devices(config.devices, gpus)
        open_devices(plan)
    except DeviceError as error:
        return None, error.for_command(command)
    return plan, None


def _check_driver(config: Config, gpus: list[Gpu], checks: Checklist) -> None:
    if config.devices.emulate:
        checks.passed(f"Emulating {config.devices.emulate} GPUs on the CPU: no driver is needed")
    elif gpus:
        checks.passed(f"NVIDIA driver installed ({len(gpus)} GPUs detected)")
    elif config.devices.data_gpu is None and config.devices.model_gpu is None:
        checks.passed("No NVIDIA GPU here, and none was asked for: the CPU does both roles")


def _check_placement(plan: DevicePlan, checks: Checklist) -> None:
    models = ",".join(str(index) for index in plan.model_indices)
    if plan.data_indices:
        datas = ",".join(str(index) for index in plan.data_indices)
        checks.passed(f"GPU indices valid: data_gpu={datas}, model_gpu={models}")
        cards = dict.fromkeys((*plan.data_indices, *plan.model_indices))
        checks.passed("Set visible devices: " + " and ".join(f"GPU {card}" for card in cards))
    if plan.caps_mb:
        checks.passed(f"Memory caps configured: {', '.join(f'{mb} MB' for mb in plan.caps_mb)}")
    elif plan.gpus:
        checks.passed("Memory growth configured")
    for proof in prove_devices(plan):
        uuid = f", {proof.uuid}" if proof.uuid else ""
        checks.passed(f"An op ran on the {proof.role} device {proof.device} ({proof.name}{uuid})")


def _check_model(config: Config, plan: DevicePlan, checks: Checklist) -> None:
    # TensorFlow comes with it, now that it is configured.
    from myxtts.rehearsal import open_learner, places, small  # noqa: PLC0415

    for device, where in places(open_learner(small(config), plan)).items():
        if where != {device}:
            raise CheckFailedError(f"the model of {device} has variables on {', '.join(where)}")
        checks.passed(f"Model created successfully on {device.removeprefix('/')}")


def _check_transfer(_config: Config, plan: DevicePlan, checks: Checklist) -> None:
    from myxtts.rehearsal import try_transfer  # noqa: PLC0415

    for device in plan.models:
        seconds = try_transfer(plan.data, device, BATCH_MB)
        how = "copied" if plan.gpus else "shared, as CPU devices do,"
        checks.passed(
            f"Data transfer successful: {plan.data} to {device}, "
            f"{BATCH_MB} MB {how} in {seconds * 1000:.2f} ms, every value equal"
        )


def _check_pipeline(config: Config, plan: DevicePlan, checks: Checklist) -> None:
    from myxtts.clips import ClipSound  # noqa: PLC0415
    from myxtts.noise import open_noise  # noqa: PLC0415
    from myxtts.rehearsal import count_overlaps, rehearse, small  # noqa: PLC0415

    noise = ClipSound(open_noise(config, CLIP_SECONDS, len(plan.models)), config.data)
    run = rehearse(small(config), plan, STEPS, noise, lambda _line: None)
    verdict = run.verdict(warm_up=2)
    done = [times.step for times in run.times]
    if done != list(range(1, STEPS + 1)) or verdict is None:
        raise CheckFailedError(f"steps 1 to {STEPS} were to run in order, and {done} did")
    overlaps = count_overlaps(run.folder)
    if not overlaps:
        raise CheckFailedError(
            "no batch was prepared while a step ran",
            "give the ring more room: pipeline.depth=3, or see `myxtts profile`",
        )
    checks.passed(
        f"Pipeline simulation successful: {STEPS} steps, in {overlaps} of them "
        "the next batches were prepared meanwhile"
    )
    checks.passed(
        f"{verdict.step_seconds * 1000:.0f} ms a step, model busy {percent(verdict.busy)}, "
        f"{verdict.bound} (a small network, on noise)"
    )


def _tensorflow_version() -> str:
    for name in ("tensorflow", "tensorflow-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    raise CheckFailedError("TensorFlow is not installed", "pip install 'myxtts[cuda]' or [cpu]")


STAGES: tuple[tuple[str, Callable[[Config, DevicePlan, Checklist], None]], ...] = (
    ("3. Testing model creation on {models}...", _check_model),
    ("4. Testing data transfer between devices...", _check_transfer),
    ("5. Simulating training pipeline...", _check_pipeline),
)
