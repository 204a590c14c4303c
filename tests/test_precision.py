"""The networks under mixed precision: close to float32, and in float32 where it counts."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import Array, distance, golden
from test_codec import codec
from test_codec import on_device as codec_input
from test_gpt import golden_batch, run, tiny_gpt
from test_speaker import made as made_speaker
from test_speaker import speech
from test_vocoder import latents
from test_vocoder import made as made_vocoder
from test_vocoder import speaker as voice

from myxtts.weights import named_weights

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

MODEL = "/CPU:1"
MIXED = pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
PARTS = pytest.mark.parametrize("part", ["gpt", "codec", "vocoder", "speaker"])

WITHIN = {"mixed_bfloat16": 0.03, "mixed_float16": 0.004}
"""Of the largest value: eight bits of a number, or eleven, through every layer."""

# Softmax, norms and losses, and the sums and means they and the mels are made of.
DELICATE = {
    *("Softmax", "LogSoftmax", "Rsqrt", "Sqrt", "Mean", "Square", "SquaredDifference"),
    *("SparseSoftmaxCrossEntropyWithLogits", "Log", "Exp", "Sum", "ArgMin"),
}
EXPECTED = {
    "gpt": {"Softmax", "Rsqrt", "SparseSoftmaxCrossEntropyWithLogits"},
    "codec": {"Mean", "Square", "ArgMin"},
    "vocoder": {"Rsqrt", "Sum"},
    "speaker": {"Softmax", "Rsqrt", "Sqrt", "Log"},
}
HEAVY = {"MatMul", "BatchMatMulV2", "Conv2D"}


class Traced(NamedTuple):
    """One network's results and the operations of its graph."""

    network: keras.Model
    ours: dict[str, Any]
    theirs: dict[str, Array]
    graph: Any


@cache
def traced(part: str, precision: str) -> Traced:
    network, work, theirs = {
        "gpt": gpt_work,
        "codec": codec_work,
        "vocoder": vocoder_work,
        "speaker": speaker_work,
    }[part](precision)
    function = tf.function(work, autograph=False).get_concrete_function()
    with tf.device(MODEL):
        return Traced(network, function(), theirs, function.graph.as_graph_def())


Work = tuple[keras.Model, Callable[[], dict[str, Any]], dict[str, Array]]


def gpt_work(precision: str) -> Work:
    gpt, batch, out = tiny_gpt(precision), golden_batch(), golden("gpt_train")

    def work() -> dict[str, Any]:
        logits, loss = run(gpt, batch)
        return {
            "text": logits.text_BXV,
            "audio": logits.audio_BYV,
            "text's loss": loss.text,
            "audio's loss": loss.audio,
        }

    theirs = {
        "text": out["out.text_logits"].transpose(0, 2, 1),
        "audio": out["out.mel_logits"].transpose(0, 2, 1),
        "text's loss": out["out.loss_text"],
        "audio's loss": out["out.loss_mel"],
    }
    return gpt, work, theirs


def codec_work(precision: str) -> Work:
    network, mel, out = codec(precision), codec_input("in.mel"), golden("dvae")

    def work() -> dict[str, Any]:
        told = network.reconstruct(mel)
        return {
            "vectors": told.vectors_BNC,
            "mel from the golden codes": network.decode(tf.constant(out["out.codes"])),
            "reconstruction": told.reconstruction,
            "commitment": told.commitment,
        }

    theirs = {
        "vectors": out["out.encoder_out"].transpose(0, 2, 1),
        "mel from the golden codes": out["out.decoded"].transpose(0, 2, 1),
        "reconstruction": out["out.train_recon_loss_mean"],
        "commitment": out["out.train_commitment_loss"],
    }
    return network, work, theirs


def vocoder_work(precision: str) -> Work:
    network, out = made_vocoder(precision), golden("hifigan")
    given = latents(), voice()
    return network, lambda: {"sound": network(*given)}, {"sound": out["out.wav_batch2"][:, 0]}


def speaker_work(precision: str) -> Work:
    network, out, wave = made_speaker(precision), golden("speaker_encoder"), speech()
    return network, lambda: {"vector": network(wave)}, {"vector": out["out.embedding_l2"]}


def types_of(graph: Any, kinds: set[str]) -> Iterator[tuple[str, str]]:
    """Kind and type of all operations of these kinds, also in functions that the graph calls."""
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    for node in nodes:
        if node.op in kinds and "T" in node.attr:
            yield node.op, tf.as_dtype(node.attr["T"].type).name


@PARTS
@MIXED
def test_results_are_finite_and_close_to_those_in_float32(part: str, precision: str) -> None:
    found = traced(part, precision)
    assert found.ours.keys() == found.theirs.keys()
    for name, theirs in found.theirs.items():
        ours = tf.cast(found.ours[name], tf.float32).numpy()
        assert np.isfinite(ours).all(), name
        assert distance(ours, theirs) < WITHIN[precision], name


@PARTS
@MIXED
def test_norms_softmax_and_losses_are_computed_in_float32(part: str, precision: str) -> None:
    found = set(types_of(traced(part, precision).graph, DELICATE))
    assert {kind for kind, _ in found} >= EXPECTED[part]
    assert [pair for pair in found if pair[1] not in ("float32", "int32")] == []


@PARTS
@MIXED
def test_the_heavy_work_is_done_in_the_narrow_type(part: str, precision: str) -> None:
    narrow = precision.removeprefix("mixed_")
    heavy = [kind for _, kind in types_of(traced(part, precision).graph, HEAVY)]
    # Mels, weight norms and the codebook's distances stay in float32.
    assert heavy.count(narrow) > 0.8 * len(heavy) > 0


@PARTS
@MIXED
def test_weights_stay_in_float32(part: str, precision: str) -> None:
    weights = named_weights(traced(part, precision).network)
    assert {v.dtype for v in weights.values()} == {"float32"}
