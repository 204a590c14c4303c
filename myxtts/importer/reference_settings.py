"""The reference's config.json: what is read of it, and what is written for it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from myxtts.config import ModelConfig
from myxtts.errors import UserError

LARGEST = 1 << 20  # Bytes; the released file has 4 kB.
ARGUMENTS = "model_args"
LANGUAGES = "en es fr de it pt pl tr ru nl cs ar zh-cn hu ko ja hi".split()
_AUDIO = {"sample_rate": 22050, "output_sample_rate": 24000}
_SPEAKING: Mapping[str, Any] = {
    "temperature": 0.75,
    "length_penalty": 1.0,
    "repetition_penalty": 5.0,
    "top_k": 50,
    "top_p": 0.85,
    "num_gpt_outputs": 1,
    "gpt_cond_len": 30,
    "gpt_cond_chunk_len": 4,
    "max_ref_len": 30,
    "sound_norm_refs": False,
}
"""The released file's; the reference's own defaults are those of XTTS-v1."""


def read_settings(file: Path) -> dict[str, Any]:
    """The object in config.json."""
    remedy = "give the config.json that belongs to model.pth"
    try:
        with file.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise UserError(f"{file} is larger than {LARGEST} bytes", remedy)
        settings = json.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or 'cannot be read'}", remedy) from None
    except (ValueError, RecursionError):
        raise UserError(f"{file} is no JSON", remedy) from None
    if not isinstance(settings, dict) or not isinstance(settings.get(ARGUMENTS), dict):
        raise UserError(f"{file} has no section {ARGUMENTS}", remedy)
    return settings


def settings_text(model: ModelConfig, given: Path | None) -> str:
    """The text of a config.json for this model: the one it came with, where that is still right."""
    ours = _arguments(model)
    if given is None:
        return _dumped(
            {"model": "xtts", ARGUMENTS: ours, "audio": _AUDIO, "languages": LANGUAGES, **_SPEAKING}
        )
    settings = read_settings(given)
    theirs = settings[ARGUMENTS]
    wrong = {key for key, value in ours.items() if theirs.get(key, value) not in (value, None)}
    if not wrong:
        return given.read_text(encoding="utf-8-sig")
    return _dumped({**settings, ARGUMENTS: {**theirs, **{key: ours[key] for key in wrong}}})


def constants(model: ModelConfig) -> dict[str, Any]:
    """What must stand in model_args where it stands there at all: sizes no part may differ in."""
    return {
        "gpt_code_stride_len": 1024,
        "gpt_use_perceiver_resampler": True,
        "input_sample_rate": 22050,
        "output_sample_rate": 24000,
        "output_hop_length": 256,
        "decoder_input_dim": model.gpt.width,
        "d_vector_dim": model.speaker.width,
        "cond_d_vector_in_each_upsampling_layer": True,
    }


def _arguments(model: ModelConfig) -> dict[str, Any]:
    gpt = model.gpt
    return {
        "gpt_batch_size": 1,
        "enable_redaction": False,
        "kv_cache": True,
        "gpt_checkpoint": None,
        "clvp_checkpoint": None,
        "decoder_checkpoint": None,
        "num_chars": 255,
        "tokenizer_file": "",
        "gpt_max_audio_tokens": gpt.max_audio_tokens,
        "gpt_max_text_tokens": gpt.max_text_tokens,
        "gpt_max_prompt_tokens": 70,
        "gpt_layers": gpt.layers,
        "gpt_n_model_channels": gpt.width,
        "gpt_n_heads": gpt.heads,
        "gpt_number_text_tokens": gpt.text_tokens,
        "gpt_start_text_token": gpt.text_start,
        "gpt_stop_text_token": gpt.text_stop,
        "gpt_num_audio_tokens": gpt.audio_tokens,
        "gpt_start_audio_token": gpt.audio_start,
        "gpt_stop_audio_token": gpt.audio_stop,
        "gpt_use_masking_gt_prompt_approach": True,
        **constants(model),
    }


def _dumped(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, indent=4, ensure_ascii=False) + "\n"
