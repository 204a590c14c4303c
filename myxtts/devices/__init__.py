"""Picks, caps and proves devices; alone in touching `tf.config`."""

from myxtts.devices.cluster import Cluster, read_cluster
from myxtts.devices.errors import DeviceError
from myxtts.devices.gpus import MB, Gpu, GpuReading, list_gpus, open_nvml, read_gpu
from myxtts.devices.limits import optimal_limits
from myxtts.devices.opening import (
    Say,
    allocator_bytes,
    compute_capability,
    count_devices,
    explicit_moves,
    open_devices,
    silent_moves,
)
from myxtts.devices.plan import DevicePlan, plan_devices
from myxtts.devices.proof import Proof, prove_devices

__all__ = [
    "MB",
    "Cluster",
    "DeviceError",
    "DevicePlan",
    "Gpu",
    "GpuReading",
    "Proof",
    "Say",
    "allocator_bytes",
    "compute_capability",
    "count_devices",
    "explicit_moves",
    "list_gpus",
    "open_devices",
    "open_nvml",
    "optimal_limits",
    "plan_devices",
    "prove_devices",
    "read_cluster",
    "read_gpu",
    "silent_moves",
]
