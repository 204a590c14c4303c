"""The shape of every tensor, from the settings; a test holds the networks to it.

A layer's kernel says it all: its bias has the last axis, its norm and its weight norm's
magnitude too. Legend: D width, V vocabulary, I inner width.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from myxtts.config import CodecConfig, GptConfig, ModelConfig, SpeakerConfig, VocoderConfig
from myxtts.importer.names import (
    CONDITIONING_BLOCKS,
    PERCEIVER_LAYERS,
    Layout,
    Name,
    codec_names,
    gpt_names,
    speaker_names,
    vocoder_names,
)

MELS = 80
LATENTS = 32
PERCEIVER_INNER = 512  # Of the perceiver's attention, whatever the GPT's width.
ATTENTION_INNER = 128  # Of the speaker encoder's pooling, whatever its width.
SPEAKER_BANDS = 8  # Of 64 mel bands after three halvings.
EXTRA_TEXT_POSITIONS = 2
EXTRA_AUDIO_POSITIONS = 3

PREFIXES = {
    "gpt": "gpt.",
    "vocoder": "hifigan_decoder.waveform_decoder.",
    "speaker": "hifigan_decoder.speaker_encoder.",
    "codec": "",
}
"""What stands before the names of each part: the first three lie in model.pth."""

Shape = tuple[int, ...]
Layers = Iterator[tuple[str, Shape]]


@dataclass(frozen=True)
class Row:
    """One tensor: both names, both shapes, and how one becomes the other."""

    ours: str
    theirs: str
    layout: Layout
    shape: Shape
    shape_of_theirs: Shape


def rows(part: str, model: ModelConfig) -> list[Row]:
    """Every tensor of the part: gpt, codec, vocoder or speaker."""
    match part:
        case "gpt":
            return _rows(part, gpt_names(model.gpt), dict(_gpt(model.gpt)))
        case "codec":
            return _rows(part, codec_names(model.codec), dict(_codec(model.codec)))
        case "vocoder":
            layers = _vocoder(model.vocoder, model.gpt.width, model.speaker.width)
            return _rows(part, vocoder_names(model.vocoder), dict(layers))
        case "speaker":
            return _rows(part, speaker_names(model.speaker), dict(_speaker(model.speaker)))
    raise ValueError(part)


def _rows(part: str, names: Iterator[Name], layers: Mapping[str, Shape]) -> list[Row]:
    return [_row(PREFIXES[part], name, layers) for name in names]


def _row(prefix: str, name: Name, layers: Mapping[str, Shape]) -> Row:
    layer, _, leaf = name.ours.rpartition("/")
    if name.ours in layers:
        shape = layers[name.ours]
    elif leaf in ("kernel", "direction"):
        shape = layers[layer]
    elif leaf == "bias" and layer.endswith("/up"):
        shape = layers[layer][-2:-1]  # A transposed convolution ends in its input's channels.
    else:
        shape = layers[layer][-1:]
    theirs = name.layout.theirs(np.broadcast_to(np.int8(0), shape)).shape
    return Row(name.ours, prefix + name.theirs, name.layout, shape, theirs)


def _gpt(config: GptConfig) -> Layers:
    width = config.width
    yield from _conditioning(width)
    counts = (("text", config.text_tokens), ("audio", config.audio_tokens))
    for kind, tokens in counts:
        yield f"{kind}_embedding/table", (tokens, width)
        yield f"{kind}_head", (width, tokens)
    yield "text_positions/table", (config.max_text_tokens + EXTRA_TEXT_POSITIONS, width)
    yield "audio_positions/table", (config.max_audio_tokens + EXTRA_AUDIO_POSITIONS, width)
    for block in range(config.layers):
        yield f"block_{block}/attention_norm", (width,)
        yield f"block_{block}/qkv", (width, 3 * width)
        yield f"block_{block}/out", (width, width)
        yield f"block_{block}/mlp_norm", (width,)
        yield f"block_{block}/widen", (width, 4 * width)
        yield f"block_{block}/narrow", (4 * width, width)
    yield "last_norm", (width,)
    yield "final_norm", (width,)


def _conditioning(width: int) -> Layers:
    yield "conditioning/first", (MELS, width)
    for block in range(CONDITIONING_BLOCKS):
        yield f"conditioning/block_{block}/norm", (width,)
        yield f"conditioning/block_{block}/qkv", (width, 3 * width)
        yield f"conditioning/block_{block}/out", (width, width)
    yield "perceiver/latents", (LATENTS, width)
    inner = width * 4 * 2 // 3
    for layer in range(PERCEIVER_LAYERS):
        yield f"perceiver/layer_{layer}/query", (width, PERCEIVER_INNER)
        yield f"perceiver/layer_{layer}/key_value", (width, 2 * PERCEIVER_INNER)
        yield f"perceiver/layer_{layer}/out", (PERCEIVER_INNER, width)
        yield f"perceiver/layer_{layer}/widen", (width, 2 * inner)
        yield f"perceiver/layer_{layer}/narrow", (inner, width)
    yield "perceiver/norm", (width,)


def _codec(config: CodecConfig) -> Layers:
    narrow, wide, code = config.width, 2 * config.width, config.code_width
    yield "encoder/down_0", (3, MELS, narrow)
    yield "encoder/down_1", (3, narrow, wide)
    yield "encoder/out", (wide, code)
    yield "decoder/in", (code, wide)
    for side in ("encoder", "decoder"):
        for block in range(config.residual_blocks):
            for index, shape in enumerate(((3, wide, wide), (3, wide, wide), (wide, wide))):
                yield f"{side}/residual_{block}/conv_{index}", shape
    yield "decoder/up_0", (3, wide, wide)
    yield "decoder/up_1", (3, wide, narrow)
    yield "decoder/out", (narrow, MELS)
    yield "codebook/vectors", (config.codes, code)
    yield "codebook/counts", (config.codes,)
    yield "codebook/sums", (config.codes, code)


def _vocoder(config: VocoderConfig, latents: int, speaker: int) -> Layers:
    channels = config.width
    yield "first", (7, latents, channels)
    yield "speaker", (speaker, channels)
    for stage, taps in enumerate(config.upsample_kernels):
        half = channels // 2
        yield f"stage_{stage}/up", (taps, half, channels)
        yield f"stage_{stage}/speaker", (speaker, half)
        for unit, kernel in enumerate(config.residual_kernels):
            for tap in range(len(config.residual_dilations)):
                yield f"stage_{stage}/unit_{unit}/spread_{tap}", (kernel, half, half)
                yield f"stage_{stage}/unit_{unit}/plain_{tap}", (kernel, half, half)
        channels = half
    yield "last", (7, channels, 1)


def _speaker(config: SpeakerConfig) -> Layers:
    channels = config.filters[0]
    yield "first", (3, 3, 1, channels)
    yield "first_norm", (channels,)
    for stage, (filters, blocks) in enumerate(zip(config.filters, config.blocks, strict=True)):
        for block in range(blocks):
            yield from _speaker_block(f"stage_{stage}/block_{block}", channels, filters)
            channels = filters
    pooled = SPEAKER_BANDS * channels
    yield "attention_in", (pooled, ATTENTION_INNER)
    yield "attention_norm", (ATTENTION_INNER,)
    yield "attention_out", (ATTENTION_INNER, pooled)
    yield "out", (2 * pooled, config.width)


def _speaker_block(block: str, channels: int, filters: int) -> Layers:
    yield f"{block}/conv_0", (3, 3, channels, filters)
    yield f"{block}/conv_1", (3, 3, filters, filters)
    yield f"{block}/squeeze", (filters, filters // 8)
    yield f"{block}/excite", (filters // 8, filters)
    yield f"{block}/shortcut", (1, 1, channels, filters)
    for norm in ("norm_0", "norm_1", "shortcut_norm"):
        yield f"{block}/{norm}", (filters,)
