"""Opens the planned devices in TensorFlow; nothing else in the project touches `tf.config`.

The order is the contract: environment, import, caps or growth, first op. TensorFlow
reads each of them once, so a plan opened too late is an error and never half a plan.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from myxtts.devices.cluster import Cluster, join
from myxtts.devices.errors import DeviceError
from myxtts.devices.plan import TWO_EMULATED, DevicePlan

Say = Callable[[str], None]

_policy_lock = threading.Lock()
_policy = threading.local()
_opened: DevicePlan | None = None


def quiet(_line: str) -> None:
    """Says nothing."""


def open_devices(plan: DevicePlan, say: Say = quiet, cluster: Cluster | None = None) -> None:
    """Makes TensorFlow see just the plan's devices, capped or growing; once for a process.

    With a cluster it also waits for the other machines' workers.
    """
    global _opened  # noqa: PLW0603  A process has one set of devices, as TensorFlow has.
    if _opened == plan:
        return
    if _opened is not None:
        raise DeviceError("this process has opened other devices already: one plan, one process")
    set_environment(plan)
    import tensorflow as tf  # noqa: PLC0415  It reads the environment on import.

    try:
        configure(tf, plan)
        if cluster:
            say(f"worker {cluster.index} of {cluster.count}: waiting for all to join")
            join(tf, cluster)
        # Starts the devices here, where a fault can still be told as one of devices.
        tf.config.list_logical_devices()
    except tf.errors.OpError as error:
        raise DeviceError(
            f"TensorFlow could not start {', '.join(plan.devices)}: {error}"
        ) from error
    except RuntimeError as error:
        raise DeviceError(
            f"TensorFlow had already started when the devices were to be opened ({error}); "
            "call open_devices before any other TensorFlow call"
        ) from error
    for line in _opening_lines(plan):
        say(line)
    _opened = plan


def set_environment(plan: DevicePlan) -> None:
    """What CUDA and TensorFlow read once, before they start."""
    if plan.emulated:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    elif plan.gpus:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.cuda_id for gpu in plan.gpus)
    if "tensorflow" not in sys.modules:
        # TensorFlow's own start-up chatter; its warnings and errors stay.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")


def configure(tf: Any, plan: DevicePlan) -> None:
    """Caps or growth for each GPU, or the CPU's logical devices."""
    if plan.emulated:
        _emulate(tf, plan)
        return
    seen = tf.config.list_physical_devices("GPU")
    if len(seen) != len(plan.gpus):
        raise DeviceError(
            f"{len(plan.gpus)} GPUs were asked for and TensorFlow sees {len(seen)}: "
            "it is a build without CUDA, lacks CUDA's libraries, or had started before",
            TWO_EMULATED,
        )
    for position, gpu in enumerate(seen):
        caps = plan.caps_mb if plan.halves else plan.caps_mb[position : position + 1]
        if caps:
            limits = [tf.config.LogicalDeviceConfiguration(memory_limit=mb) for mb in caps]
            tf.config.set_logical_device_configuration(gpu, limits)
        else:
            tf.config.experimental.set_memory_growth(gpu, enable=True)


def _emulate(tf: Any, plan: DevicePlan) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration() for _ in range(plan.emulated)]
    tf.config.set_logical_device_configuration(cpu, logical)
    # Logical CPU devices share one pool: a share of the cores for each device in use,
    # or the data device would slow the model device in a way no GPU does.
    tf.config.threading.set_intra_op_parallelism_threads(max(1, _cores() // len(plan.devices)))
    tf.config.threading.set_inter_op_parallelism_threads(max(2, len(plan.devices)))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _opening_lines(plan: DevicePlan) -> list[str]:
    """The guides' lines: their troubleshooting looks for them word by word."""
    if not plan.data_indices or len(plan.devices) == 1 or plan.arrangement == "single":
        return []
    cards = dict.fromkeys((*plan.data_indices, *plan.model_indices))
    names = " and ".join(f"GPU {i}" for i in cards)
    lines = [
        "🎯 Configuring Multi-GPU Mode...",
        f"   Data Processing GPU: {', '.join(str(i) for i in plan.data_indices)}",
        f"   Model Training GPU: {', '.join(str(i) for i in plan.model_indices)}",
        f"   Set visible devices: {names}",
    ]
    if plan.caps_mb:
        lines += [
            f"   Memory cap for data GPU: {plan.caps_mb[0]} MB",
            f"   Memory cap for model GPU: {plan.caps_mb[-1]} MB",
        ]
    elif plan.emulated:
        stand_ins = ", ".join(
            f"{device} for GPU {device.rpartition(':')[2]}" for device in plan.devices
        )
        lines.append(f"   Emulated on the CPU: {stand_ins}; memory is neither capped nor grown")
        if len(plan.devices) > _cores():
            lines.append(
                f"   ⚠ {len(plan.devices)} emulated devices share {_cores()} cores and take turns: "
                "their speeds say little"
            )
    else:
        lines += [
            "   Configured memory growth for data GPU",
            "   Configured memory growth for model GPU",
        ]
    return lines


@contextlib.contextmanager
def explicit_moves() -> Iterator[None]:
    """In this thread, an eager op on another device's tensor is an error, not a silent copy."""
    # On a GPU int32 tensors live in host memory, where every op looks for them.
    on_gpu = bool(_opened and _opened.gpus)
    with _held_policy("silent_for_int32" if on_gpu else "explicit"):
        yield


@contextlib.contextmanager
def silent_moves() -> Iterator[None]:
    """Lifts `explicit_moves` where TensorFlow itself mixes devices, as a data set's making does."""
    with _held_policy("silent"):
        yield


@contextlib.contextmanager
def _held_policy(policy: str) -> Iterator[None]:
    import tensorflow as tf  # noqa: PLC0415

    # Before TensorFlow's devices are started, a policy would become the default of all threads.
    tf.config.list_logical_devices("CPU")
    before = getattr(_policy, "name", "silent")
    _set_policy(tf, policy)
    try:
        yield
    finally:
        _set_policy(tf, before)


def _set_policy(tf: Any, policy: str) -> None:
    """Sets this thread's policy, which TensorFlow reads per thread and remembers per process."""
    with _policy_lock:
        # It drops a call that repeats the policy set last, also when another thread set that.
        for step in ("warn", policy):
            tf.config.experimental.set_device_policy(step)
    _policy.name = policy


def allocator_bytes(device: str) -> tuple[int, int] | None:
    """Bytes in use and their peak in a GPU's allocator; None on the CPU, which keeps no count."""
    import tensorflow as tf  # noqa: PLC0415

    if "GPU" not in device:
        return None
    info = tf.config.experimental.get_memory_info(device.removeprefix("/"))
    return int(info["current"]), int(info["peak"])


def compute_capability(device: str) -> tuple[int, int] | None:
    """A card's generation, as (8, 9); None on the CPU and for a card that does not say."""
    import tensorflow as tf  # noqa: PLC0415

    if "GPU" not in device:
        return None
    cards = tf.config.list_physical_devices("GPU")
    place = int(device.rpartition(":")[2])
    # Halves of one card are more devices than there are cards.
    details = tf.config.experimental.get_device_details(cards[min(place, len(cards) - 1)])
    found = details.get("compute_capability")
    return (int(found[0]), int(found[1])) if found else None


def count_devices(plan: DevicePlan) -> int:
    """How many devices of the plan's kind TensorFlow itself counts."""
    import tensorflow as tf  # noqa: PLC0415

    return len(tf.config.list_logical_devices("GPU" if plan.gpus else "CPU"))
