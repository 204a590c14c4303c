"""Whose the memory of a device is, when there is not enough of it.

Legend: bytes, told in MB.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from myxtts.devices import MB, DevicePlan, allocator_bytes, open_nvml, read_gpu
from myxtts.learner import At, Learner
from myxtts.pipeline import Hands, OutOfMemoryError

OPTIMIZER = ("optimizer", "ema")


def attributed(
    learner: Learner, batches: Sequence[Hands], at: At, plan: DevicePlan
) -> dict[str, tf.Tensor]:
    """A step; where it finds no room, the error has a line for everything that holds some."""
    try:
        return learner(batches, at)
    except OutOfMemoryError as error:
        lines = list(_lines(error.device, learner, batches, plan))
        error.problem = "\n   ".join([error.problem, *lines])
        if learner.shrunk is None:
            error.remedy += "\nthe same step in smaller pieces: --oom shrink"
        raise


def _lines(
    device: str, learner: Learner, batches: Sequence[Hands], plan: DevicePlan
) -> Iterator[str]:
    groups = {
        name: sum(_size(v) for v in group.values() if _lies_on(v, device))
        for name, group in learner.state.items()
    }
    optimizer = sum(groups.pop(name, 0) for name in OPTIMIZER)
    weights = sum(groups.values())
    hands = [hand for shared in batches for hand in shared]
    held = [tensor for hand in hands for tensor in tf.nest.flatten(hand.tensors)]
    batch = sum(_size(tensor) for tensor in held if _lies_on(tensor, device))
    yield f"weights: {weights / MB:.0f} MB, optimizer: {optimizer / MB:.0f} MB"
    # One batch is learned from while the next one waits.
    yield f"batches: {2 * batch / MB:.0f} MB"
    if allocated := allocator_bytes(device):
        known = weights + optimizer + 2 * batch
        yield f"activations and the rest, at most: {max(0, allocated[1] - known) / MB:.0f} MB"
    yield from _others(device, plan)


def _others(device: str, plan: DevicePlan) -> Iterator[str]:
    """What other processes hold of the card, where NVML tells."""
    gpu, mine = plan.gpu_of(device), allocator_bytes(device)
    with open_nvml() as nvml:
        reading = read_gpu(nvml, gpu.uuid) if gpu and gpu.uuid and nvml else None
    if mine and reading and reading.used_mb is not None:
        others = max(0.0, reading.used_mb - mine[0] / MB)
        yield f"other processes, and CUDA itself: {others:.0f} MB"


def _lies_on(held: Any, device: str) -> bool:
    return str(tf_value(held).device).endswith(device.removeprefix("/"))


def tf_value(held: Any) -> Any:
    """TensorFlow's variable inside Keras's; a tensor or a variable as it is."""
    return held if tf.is_tensor(held) or isinstance(held, tf.Variable) else held.value


def _size(held: Any) -> int:
    shape = tf.TensorShape(held.shape)
    return int((shape.num_elements() or 0) * tf.as_dtype(held.dtype).size)
