"""The network's settings: the weights' shapes tell most, config.json and vocab.json the rest."""

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from pydantic import ValidationError

from myxtts.config import ModelConfig, VocoderConfig
from myxtts.config.model import MEL_HOP
from myxtts.config.problems import shown
from myxtts.errors import UserError
from myxtts.importer.reference_settings import constants
from myxtts.importer.shapes import (
    EXTRA_AUDIO_POSITIONS,
    EXTRA_TEXT_POSITIONS,
    PREFIXES,
    Shape,
)
from myxtts.text.vocabulary import START, STOP, Vocabulary

Shapes = Mapping[str, Shape]
_FIXED = {"gpt_layers": "layers", "gpt_n_model_channels": "width"}
_COUNTED = {
    "gpt_number_text_tokens": "text_tokens",
    "gpt_num_audio_tokens": "audio_tokens",
    "gpt_max_text_tokens": "max_text_tokens",
    "gpt_max_audio_tokens": "max_audio_tokens",
    "gpt_start_text_token": "text_start",
    "gpt_stop_text_token": "text_stop",
}
LONGEST_AXIS = 1 << 18  # So that no product of three sizes leaves 64 bits.
_REMEDY = "give model.pth, dvae.pth and config.json of one and the same XTTS-v2"


class SizeError(UserError):
    """The files do not describe an XTTS-v2."""


def read_sizes(
    model: Shapes, codec: Shapes | None, arguments: Mapping[str, Any], vocabulary: Vocabulary
) -> ModelConfig:
    """Settings of the network whose weights these are; `arguments` are config.json's model_args."""
    gpt = _gpt(model) | {"heads": _whole(arguments, "gpt_n_heads")} | _ends(vocabulary)
    if len(vocabulary) > gpt["text_tokens"]:
        raise SizeError(
            f"{vocabulary.origin} has {len(vocabulary)} tokens, "
            f"the weights have {gpt['text_tokens']}",
            "give the vocab.json that belongs to model.pth",
        )
    for key, ours in _FIXED.items():
        if key in arguments and arguments[key] != gpt[ours]:
            raise SizeError(
                f"config.json says {key} {_told(arguments[key])}, the weights have {gpt[ours]}",
                _REMEDY,
            )
    parts = {
        "gpt": gpt,
        "codec": {"codes": gpt["audio_tokens"] - 2} if codec is None else _codec(codec),
        "vocoder": _vocoder(model),
        "speaker": _speaker(model),
    }
    try:
        return ModelConfig.model_validate({"size": "big", **parts})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise SizeError(
            f"the weights are of no XTTS-v2: {place}: {fault['msg']}", _REMEDY
        ) from None


def check_constants(model: ModelConfig, arguments: Mapping[str, Any]) -> None:
    """Refuses a config.json that says otherwise of what every XTTS-v2 has."""
    for key, value in constants(model).items():
        if arguments.get(key, value) != value:
            raise SizeError(
                f"config.json says {key} {_told(arguments[key])}, it has to be {value}",
                _REMEDY,
            )


def disagreements(model: ModelConfig, arguments: Mapping[str, Any]) -> list[str]:
    """Where config.json counts otherwise than the weights, which are believed."""
    return [
        f"config.json says {key} {_told(arguments[key])}, the weights have {has}"
        for key, ours in _COUNTED.items()
        if arguments.get(key) not in (None, has := getattr(model.gpt, ours))
    ]


def _ends(vocabulary: Vocabulary) -> dict[str, int]:
    tokens = vocabulary.tokens
    return {"text_start": tokens[START], "text_stop": tokens[STOP]}


def _gpt(shapes: Shapes) -> dict[str, Any]:
    text, audio = (_axes(shapes, f"gpt.{kind}_embedding.weight", 2) for kind in ("text", "mel"))
    text_places = _axes(shapes, "gpt.text_pos_embedding.emb.weight", 2)[0]
    audio_places = _axes(shapes, "gpt.mel_pos_embedding.emb.weight", 2)[0]
    return {
        "layers": _count(shapes, r"gpt\.gpt\.h\.(\d+)\."),
        "width": text[1],
        "text_tokens": text[0],
        "audio_tokens": audio[0],
        "max_text_tokens": text_places - EXTRA_TEXT_POSITIONS,
        "max_audio_tokens": audio_places - EXTRA_AUDIO_POSITIONS,
    }


def _codec(shapes: Shapes) -> dict[str, Any]:
    width, codes = _axes(shapes, "codebook.embed", 2)
    return {
        "codes": codes,
        "code_width": width,
        "width": _axes(shapes, "encoder.0.0.weight", 3)[0],
        "residual_blocks": _count(shapes, r"decoder\.(\d+)\.net\.0\.weight"),
    }


def _vocoder(shapes: Shapes) -> dict[str, Any]:
    prefix = PREFIXES["vocoder"]
    dotted = re.escape(prefix)
    ups = _count(shapes, rf"{dotted}ups\.(\d+)\.")
    weight = "parametrizations.weight.original1"
    kernels = [_axes(shapes, f"{prefix}ups.{stage}.{weight}", 3)[2] for stage in range(ups)]
    units = _count(shapes, rf"{dotted}resblocks\.(\d+)\.") // ups
    spreads = _count(shapes, rf"{dotted}resblocks\.0\.convs1\.(\d+)\.")
    residual = [
        _axes(shapes, f"{prefix}resblocks.{unit}.convs1.0.{weight}", 3)[2] for unit in range(units)
    ]
    dilations = VocoderConfig().residual_dilations
    if spreads != len(dilations) or prod(kernel // 2 for kernel in kernels) != MEL_HOP:
        raise SizeError(
            f"the vocoder has kernels {kernels} and {spreads} dilations; those of XTTS-v2 are "
            f"twice the rates, which multiply to {MEL_HOP}, and {len(dilations)}",
            _REMEDY,
        )
    return {
        "width": _axes(shapes, f"{prefix}conv_pre.weight", 3)[0],
        "upsample_rates": [kernel // 2 for kernel in kernels],
        "upsample_kernels": kernels,
        "residual_kernels": residual,
    }


def _speaker(shapes: Shapes) -> dict[str, Any]:
    prefix = PREFIXES["speaker"]
    stages = range(1, 5)
    return {
        "width": _axes(shapes, f"{prefix}fc.weight", 2)[0],
        "filters": [_axes(shapes, f"{prefix}layer{n}.0.conv1.weight", 4)[0] for n in stages],
        "blocks": [_count(shapes, rf"{re.escape(prefix)}layer{n}\.(\d+)\.") for n in stages],
    }


def _axes(shapes: Shapes, name: str, rank: int) -> Shape:
    if name not in shapes:
        raise SizeError(f"{name} is missing, and with it a size of the network", _REMEDY)
    if len(shapes[name]) != rank or not all(0 < n <= LONGEST_AXIS for n in shapes[name]):
        raise SizeError(f"{name} is {list(shapes[name])}, which is no shape of XTTS-v2", _REMEDY)
    return shapes[name]


def _count(shapes: Shapes, pattern: str) -> int:
    """How many different numbers stand where the pattern has its group."""
    found = {match[1] for name in shapes if (match := re.match(pattern, name))}
    if not found:
        example = pattern.replace(r"(\d+)", "0").replace("\\", "")
        raise SizeError(f"no tensor has a name such as {example}", _REMEDY)
    return len(found)


def _whole(arguments: Mapping[str, Any], key: str) -> int:
    value = arguments.get(key)
    if type(value) is not int:
        raise SizeError(f"config.json has no whole number at model_args.{key}", _REMEDY)
    return value


def _told(value: Any) -> str:
    return type(value).__name__ if isinstance(value, dict | list) else shown(str(value))
