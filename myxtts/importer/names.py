"""What the reference calls each tensor, what we call it, and how the two are laid out.

One row a tensor. Every layout only moves numbers about, so that there and back is bit-same.
Ours are the paths of the Keras variables without the model's own name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from myxtts.config import CodecConfig, GptConfig, SpeakerConfig, VocoderConfig

Array = NDArray[Any]

PERCEIVER_LAYERS = 2
CONDITIONING_BLOCKS = 6


class Layout(Enum):
    """Which axes of the reference's tensor become which of ours, and which of length 1 it has."""

    SAME = ((), ())
    MATRIX = ((1, 0), ())
    """Linear (out, in) to Dense (in, out), and the codebook (width, codes) to (codes, width)."""
    POINTWISE = ((1, 0), (2,))
    """A convolution of one tap (out, in, 1) to Dense (in, out)."""
    CONVOLUTION = ((2, 1, 0), ())
    """(out, in, taps) to (taps, in, out); transposed (in, out, taps) to (taps, out, in)."""
    IMAGE = ((2, 3, 1, 0), ())
    """(out, in, height, width) to (height, width, in, out)."""
    LINE = ((0,), (1, 2))
    """(channels, 1, 1) to (channels,)."""

    def ours(self, theirs: Array) -> Array:
        """The reference's tensor as we lay it out."""
        axes, ones = self.value
        bare = theirs.reshape([n for axis, n in enumerate(theirs.shape) if axis not in ones])
        return np.transpose(bare, axes or None) if axes else bare

    def theirs(self, ours: Array) -> Array:
        """Our tensor as the reference lays it out."""
        axes, ones = self.value
        bare = np.transpose(ours, np.argsort(axes)) if axes else ours
        return np.expand_dims(bare, ones) if ones else bare

    def shape_of_ours(self, theirs: tuple[int, ...]) -> tuple[int, ...]:
        """The shape that a tensor of the reference's shape has with us."""
        axes, ones = self.value
        bare = [n for axis, n in enumerate(theirs) if axis not in ones]
        return tuple(bare[axis] for axis in axes) if axes else tuple(bare)

    def rank_of_theirs(self, ours: int) -> int:
        """How many axes the reference's tensor has."""
        return ours + len(self.value[1])


@dataclass(frozen=True)
class Name:
    """One tensor under both names."""

    ours: str
    theirs: str
    layout: Layout


def gpt_names(config: GptConfig) -> Iterator[Name]:
    """The GPT with its conditioning encoder and perceiver; the reference says `gpt.` before."""
    yield from _conditioning_names()
    for kind, ours in (("text", "text"), ("mel", "audio")):
        yield Name(f"{ours}_embedding/table", f"{kind}_embedding.weight", Layout.SAME)
        yield Name(f"{ours}_positions/table", f"{kind}_pos_embedding.emb.weight", Layout.SAME)
        yield from _weighted(f"{ours}_head", f"{kind}_head", Layout.MATRIX)
    for block in range(config.layers):
        ours, theirs = f"block_{block}", f"gpt.h.{block}"
        yield from _norm(f"{ours}/attention_norm", f"{theirs}.ln_1")
        yield from _weighted(f"{ours}/qkv", f"{theirs}.attn.c_attn", Layout.SAME)
        yield from _weighted(f"{ours}/out", f"{theirs}.attn.c_proj", Layout.SAME)
        yield from _norm(f"{ours}/mlp_norm", f"{theirs}.ln_2")
        yield from _weighted(f"{ours}/widen", f"{theirs}.mlp.c_fc", Layout.SAME)
        yield from _weighted(f"{ours}/narrow", f"{theirs}.mlp.c_proj", Layout.SAME)
    yield from _norm("last_norm", "gpt.ln_f")
    yield from _norm("final_norm", "final_norm")


def codec_names(config: CodecConfig) -> Iterator[Name]:
    """The DVAE, as in dvae.pth."""
    blocks = config.residual_blocks
    for down in range(2):
        yield from _weighted(f"encoder/down_{down}", f"encoder.{down}.0", Layout.CONVOLUTION)
    yield from _residual_blocks("encoder", "encoder", 2, blocks)
    yield from _weighted("encoder/out", f"encoder.{2 + blocks}", Layout.POINTWISE)
    yield from _weighted("decoder/in", "decoder.0", Layout.POINTWISE)
    yield from _residual_blocks("decoder", "decoder", 1, blocks)
    for up in range(2):
        theirs = f"decoder.{1 + blocks + up}.0.conv"
        yield from _weighted(f"decoder/up_{up}", theirs, Layout.CONVOLUTION)
    yield from _weighted("decoder/out", f"decoder.{3 + blocks}", Layout.POINTWISE)
    yield Name("codebook/vectors", "codebook.embed", Layout.MATRIX)
    yield Name("codebook/counts", "codebook.cluster_size", Layout.SAME)
    yield Name("codebook/sums", "codebook.embed_avg", Layout.MATRIX)


def vocoder_names(config: VocoderConfig) -> Iterator[Name]:
    """The HiFi-GAN generator; the reference says `hifigan_decoder.waveform_decoder.` before."""
    yield from _weighted("first", "conv_pre", Layout.CONVOLUTION)
    yield from _weighted("speaker", "cond_layer", Layout.POINTWISE)
    units = len(config.residual_kernels)
    for stage in range(len(config.upsample_rates)):
        yield from _weight_normed(f"stage_{stage}/up", f"ups.{stage}")
        yield from _weighted(f"stage_{stage}/speaker", f"conds.{stage}", Layout.POINTWISE)
        for unit in range(units):
            ours, theirs = f"stage_{stage}/unit_{unit}", f"resblocks.{units * stage + unit}"
            for tap in range(len(config.residual_dilations)):
                yield from _weight_normed(f"{ours}/spread_{tap}", f"{theirs}.convs1.{tap}")
                yield from _weight_normed(f"{ours}/plain_{tap}", f"{theirs}.convs2.{tap}")
    yield Name("last/kernel", "conv_post.weight", Layout.CONVOLUTION)


def speaker_names(config: SpeakerConfig) -> Iterator[Name]:
    """The speaker encoder; the reference says `hifigan_decoder.speaker_encoder.` before."""
    yield from _weighted("first", "conv1", Layout.IMAGE)
    yield from _batch_norm("first_norm", "bn1")
    for stage, blocks in enumerate(config.blocks):
        for block in range(blocks):
            yield from _speaker_block(stage, block)
    yield from _weighted("attention_in", "attention.0", Layout.POINTWISE)
    yield from _batch_norm("attention_norm", "attention.2")
    yield from _weighted("attention_out", "attention.3", Layout.POINTWISE)
    yield from _weighted("out", "fc", Layout.MATRIX)


def _conditioning_names() -> Iterator[Name]:
    yield from _weighted("conditioning/first", "conditioning_encoder.init", Layout.POINTWISE)
    for block in range(CONDITIONING_BLOCKS):
        ours, theirs = f"conditioning/block_{block}", f"conditioning_encoder.attn.{block}"
        yield from _norm(f"{ours}/norm", f"{theirs}.norm")
        yield from _weighted(f"{ours}/qkv", f"{theirs}.qkv", Layout.POINTWISE)
        yield from _weighted(f"{ours}/out", f"{theirs}.proj_out", Layout.POINTWISE)
    yield Name("perceiver/latents", "conditioning_perceiver.latents", Layout.SAME)
    for layer in range(PERCEIVER_LAYERS):
        ours, theirs = f"perceiver/layer_{layer}", f"conditioning_perceiver.layers.{layer}"
        for part, name in (("query", "to_q"), ("key_value", "to_kv"), ("out", "to_out")):
            yield Name(f"{ours}/{part}/kernel", f"{theirs}.0.{name}.weight", Layout.MATRIX)
        yield from _weighted(f"{ours}/widen", f"{theirs}.1.0", Layout.MATRIX)
        yield from _weighted(f"{ours}/narrow", f"{theirs}.1.2", Layout.MATRIX)
    yield Name("perceiver/norm/gamma", "conditioning_perceiver.norm.gamma", Layout.SAME)


def _residual_blocks(ours: str, theirs: str, first: int, blocks: int) -> Iterator[Name]:
    layouts = (Layout.CONVOLUTION, Layout.CONVOLUTION, Layout.POINTWISE)
    for block in range(blocks):
        for index, layout in enumerate(layouts):
            name = f"{theirs}.{first + block}.net.{2 * index}"
            yield from _weighted(f"{ours}/residual_{block}/conv_{index}", name, layout)


def _speaker_block(stage: int, block: int) -> Iterator[Name]:
    ours, theirs = f"stage_{stage}/block_{block}", f"layer{stage + 1}.{block}"
    for index in range(2):
        kernel = f"{theirs}.conv{index + 1}.weight"
        yield Name(f"{ours}/conv_{index}/kernel", kernel, Layout.IMAGE)
        yield from _batch_norm(f"{ours}/norm_{index}", f"{theirs}.bn{index + 1}")
    yield from _weighted(f"{ours}/squeeze", f"{theirs}.se.fc.0", Layout.MATRIX)
    yield from _weighted(f"{ours}/excite", f"{theirs}.se.fc.2", Layout.MATRIX)
    if stage and not block:
        kernel = f"{theirs}.downsample.0.weight"
        yield Name(f"{ours}/shortcut/kernel", kernel, Layout.IMAGE)
        yield from _batch_norm(f"{ours}/shortcut_norm", f"{theirs}.downsample.1")


def _weighted(ours: str, theirs: str, layout: Layout) -> Iterator[Name]:
    yield Name(f"{ours}/kernel", f"{theirs}.weight", layout)
    yield Name(f"{ours}/bias", f"{theirs}.bias", Layout.SAME)


def _weight_normed(ours: str, theirs: str) -> Iterator[Name]:
    weight = f"{theirs}.parametrizations.weight"
    yield Name(f"{ours}/magnitude", f"{weight}.original0", Layout.LINE)
    yield Name(f"{ours}/direction", f"{weight}.original1", Layout.CONVOLUTION)
    yield Name(f"{ours}/bias", f"{theirs}.bias", Layout.SAME)


def _norm(ours: str, theirs: str) -> Iterator[Name]:
    yield Name(f"{ours}/gamma", f"{theirs}.weight", Layout.SAME)
    yield Name(f"{ours}/beta", f"{theirs}.bias", Layout.SAME)


def _batch_norm(ours: str, theirs: str) -> Iterator[Name]:
    yield from _norm(ours, theirs)
    yield Name(f"{ours}/moving_mean", f"{theirs}.running_mean", Layout.SAME)
    yield Name(f"{ours}/moving_variance", f"{theirs}.running_var", Layout.SAME)
