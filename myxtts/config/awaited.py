"""Settings that are checked and kept, and that nothing in this version reads yet.

Each names the module that will. A test holds the table to the source: a setting that is read
must leave it, and one that nothing reads must stand here.
"""

from collections.abc import Mapping

from myxtts.config.settings import Config

AWAITED: Mapping[str, str] = {
    "model.size": "train",
    "model.gpt.heads": "gpt",
    "model.gpt.text_tokens": "gpt",
    "model.gpt.max_text_tokens": "gpt",
    "model.gpt.audio_tokens": "gpt",
    "model.gpt.max_audio_tokens": "gpt",
    "model.codec.codes": "codec",
    "model.codec.code_width": "codec",
    "model.codec.width": "codec",
    "model.codec.residual_blocks": "codec",
    "model.vocoder.width": "vocoder",
    "model.vocoder.upsample_rates": "vocoder",
    "model.vocoder.upsample_kernels": "vocoder",
    "model.vocoder.residual_kernels": "vocoder",
    "model.vocoder.residual_dilations": "vocoder",
    "model.speaker.width": "speaker",
    "model.speaker.filters": "speaker",
    "model.speaker.blocks": "speaker",
    "training.epochs": "train",
    "training.gradient_accumulation_steps": "train",
    "training.mixed_precision": "train",
    "training.recompute": "train",
}


def unheard(config: Config) -> list[str]:
    """The settings that differ from their defaults and change nothing in this version."""
    return [
        key
        for key in AWAITED
        if not key.startswith("model.") and _value(config, key) != _value(Config(), key)
    ]


def _value(config: Config, key: str) -> object:
    value: object = config
    for name in key.split("."):
        value = getattr(value, name)
    return value
