"""Named starting points: sizes of the network, and settings for cards of a given memory."""

from collections.abc import Mapping

# A size lists what differs from `normal`, whose numbers are the defaults in model.py. `big` is
# the released XTTS-v2. `normal` keeps its codec and speaker encoder, so that those released
# weights still fit. All sizes keep the released vocabularies of text and codes.
SIZES: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "tiny": {
        "gpt": {"layers": 6, "width": 256, "heads": 4},
        "codec": {"code_width": 64, "width": 128, "residual_blocks": 2},
        "vocoder": {"width": 64},
        "discriminator": {"period_width": 4, "scale_width": 8, "scale_groups": 4},
        "speaker": {"width": 128, "filters": (8, 16, 32, 64), "blocks": (1, 1, 1, 1)},
    },
    "small": {
        "gpt": {"layers": 8, "width": 512, "heads": 8},
        "codec": {"code_width": 256, "width": 256},
        "vocoder": {"width": 128},
        "discriminator": {"period_width": 16, "scale_width": 64},
        "speaker": {"width": 256, "filters": (16, 32, 64, 128), "blocks": (2, 2, 2, 2)},
    },
    "normal": {},
    "big": {
        "gpt": {"layers": 30, "width": 1024, "heads": 16},
        "vocoder": {"width": 512},
    },
}


def _limits(data_mb: int, model_mb: int) -> dict[str, object]:
    return {"devices.data_gpu_memory": data_mb, "devices.model_gpu_memory": model_mb}


# The guides' tables, one row each; where a row gives a range, its lower bound, because the
# upper one may not fit. Isolation is on only where the guide's own command turns it on.
PRESETS: Mapping[str, Mapping[str, object]] = {
    "low-memory": {"data.batch_size": 16, "data.buffer_size": 25},
    "high-memory": {"data.batch_size": 48, "data.buffer_size": 100},
    "12gb": {"data.batch_size": 8, "data.prefetch_buffer_size": 6, **_limits(4096, 8192)},
    "16gb": {"data.batch_size": 12, "data.prefetch_buffer_size": 4, **_limits(6144, 10240)},
    "24gb": {"data.batch_size": 16, "data.prefetch_buffer_size": 2, **_limits(8192, 16384)},
    "12-16gb-tiny": {
        "model.size": "tiny",
        "data.batch_size": 8,
        "devices.memory_isolation": True,
        **_limits(4096, 8192),
    },
    "rtx-4090-tiny": {
        "model.size": "tiny",
        "data.batch_size": 16,
        "devices.memory_isolation": True,
        **_limits(8192, 16384),
    },
    "rtx-4090": {
        "data.batch_size": 32,
        "data.num_workers": 24,
        "data.prefetch_buffer_size": 32,
        **_limits(8192, 16384),
    },
    "rtx-3090": {
        "data.batch_size": 16,
        "data.num_workers": 16,
        "data.prefetch_buffer_size": 16,
        **_limits(8192, 14336),
    },
    "rtx-3080-12gb": {
        "data.batch_size": 16,
        "data.num_workers": 16,
        "data.prefetch_buffer_size": 16,
    },
    "rtx-3080-10gb": _limits(4096, 8192),
    "rtx-3060": {
        "data.batch_size": 8,
        "data.num_workers": 8,
        "data.prefetch_buffer_size": 8,
        "training.gradient_accumulation_steps": 2,
    },
}
