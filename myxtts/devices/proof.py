"""Proof that a role's device is there: a real op, and the card's UUID."""

from dataclasses import dataclass

from myxtts.devices.errors import DeviceError
from myxtts.devices.gpus import cuda_uuid
from myxtts.devices.plan import DevicePlan


@dataclass(frozen=True)
class Proof:
    """What was seen on one device after an op ran there."""

    role: str
    device: str
    name: str
    uuid: str | None


def prove_devices(plan: DevicePlan) -> list[Proof]:
    """Runs an op on each role's device and checks the card behind it, or raises."""
    roles = [*(("data", d) for d in plan.datas), *(("model", d) for d in plan.models)]
    return [_prove(plan, role, device) for role, device in roles]


def _prove(plan: DevicePlan, role: str, device: str) -> Proof:
    import tensorflow as tf  # noqa: PLC0415

    with tf.device(device):
        ones = tf.ones([8, 8])
        product = tf.matmul(ones, ones)
    if not product.backing_device.endswith(device.removeprefix("/")):
        raise DeviceError(
            f"the {role} device is {device}, and its op ran on {product.backing_device}"
        )
    if float(product[0, 0]) != 8.0:
        raise DeviceError(f"{device} computes wrongly: 8 ones sum to {float(product[0, 0])}")
    card = plan.gpu_of(device)
    if card is None:
        return Proof(role, device, "CPU", None)
    seen = cuda_uuid(plan.gpus.index(card))
    if card.uuid and seen and card.uuid != seen:
        raise DeviceError(
            f"{device} should be GPU {card.index} ({card.uuid}), and CUDA gives {seen} instead"
        )
    return Proof(role, device, card.name or "GPU", seen or card.uuid)
