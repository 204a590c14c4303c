"""Decoding against the reference's numbers: greedy, penalised, streamed, alone and in a batch."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import WITHIN, distance, golden
from test_gpt import tiny_config, tiny_gpt

from myxtts.gpt import (
    GREEDY,
    Decoder,
    Kind,
    Request,
    Sampling,
    Spoken,
    TextError,
    decoding_weights,
)

DEVICE = "/CPU:1"
COMPILERS = pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
PENALISED = Sampling(temperature=0.0, repetition_penalty=5.0)
KINDS: tuple[Kind, ...] = ("float32", "bfloat16", "int8")
TEXTS = ([5, 9, 12, 40, 7, 33, 8], [11, 4], [3] * 15 + [50, 21, 6])
STOP = 65


@cache
def decoder(kind: Kind = "float32", *, jit: bool = False) -> Decoder:
    weights = decoding_weights(tiny_gpt(), kind, DEVICE)
    return Decoder(tiny_config(), weights, DEVICE, jit=jit, keep_logits=True)


def golden_request() -> Request:
    given = golden("gpt_generate")
    with tf.device(DEVICE):
        return Request(tf.constant(given["in.cond_latents"]), given["in.text_tokens"].tolist())


def request(rows: list[int], limit: int | None = None, seed: int = 7) -> Request:
    """The given rows of a batch whose texts have several lengths."""
    voices = golden("gpt_generate")["in.cond_latents"]
    with tf.device(DEVICE):
        voice = tf.constant(voices[rows])
    return Request(voice, [TEXTS[n] for n in rows], seed=seed, rows=rows, limit=limit)


@COMPILERS
def test_greedy_codes_and_logits_are_the_references(jit: bool) -> None:
    out = golden("gpt_generate")
    spoken = decoder(jit=jit).decode(golden_request(), GREEDY)
    assert np.array_equal(spoken.code_BN, out["out.codes_greedy"])
    assert distance(spoken.logits_BNV, out["out.step_logits"]) < WITHIN
    assert spoken.length_B.numpy().tolist() == [35, 30, 45]
    assert spoken.stopped_B.numpy().tolist() == [True, True, False]


@COMPILERS
def test_penalised_codes_are_the_references(jit: bool) -> None:
    spoken = decoder(jit=jit).decode(golden_request(), PENALISED)
    assert np.array_equal(spoken.code_BN, golden("gpt_generate")["out.codes_greedy_rep_penalty_5"])


def test_latents_collected_on_the_way_are_the_references_second_pass() -> None:
    out = golden("gpt_generate")
    spoken = decoder().decode(golden_request(), GREEDY)
    assert np.array_equal(spoken.code_BN[:1, :35], out["out.codes_for_latents"])
    assert distance(spoken.latent_BND[:1, :35], out["out.latents"]) < WITHIN


@COMPILERS
@pytest.mark.parametrize("every", [20, 7])
def test_a_stream_is_the_whole_in_pieces(jit: bool, every: int) -> None:
    out, whole = golden("gpt_generate"), decoder(jit=jit).decode(golden_request(), GREEDY)
    pieces = list(decoder(jit=jit).stream(golden_request(), GREEDY, every))
    assert [p.code_BN.shape[1] for p in pieces[:-1]] == [every] * (len(pieces) - 1)
    code_BN, latent_BND = joined(pieces)
    assert np.array_equal(code_BN, whole.code_BN)
    assert np.array_equal(latent_BND, whole.latent_BND)
    assert sum(p.length_B.numpy() for p in pieces).tolist() == [35, 30, 45]
    assert np.array_equal(code_BN[:1, :35], out["out.stream_codes"])
    assert distance(latent_BND[:1, :35], out["out.stream_latents"]) < WITHIN


def joined(pieces: list[Spoken]) -> tuple[tf.Tensor, tf.Tensor]:
    return (
        np.concatenate([p.code_BN for p in pieces], 1),
        np.concatenate([p.latent_BND for p in pieces], 1),
    )


@pytest.mark.parametrize("sampling", [GREEDY, Sampling()], ids=["greedy", "sampled"])
def test_a_row_says_the_same_alone_in_a_batch_and_streamed(sampling: Sampling) -> None:
    together = decoder().decode(request([0, 1, 2]), sampling)
    streamed = joined(list(decoder().stream(request([0, 1, 2]), sampling)))
    assert np.array_equal(streamed[0], together.code_BN)
    for row in range(3):
        alone = decoder().decode(request([row]), sampling)
        length = int(alone.length_B[0])
        assert int(together.length_B[row]) == length
        assert np.array_equal(together.code_BN[row, :length], alone.code_BN[0])
        assert (together.code_BN[row, length:].numpy() == STOP).all()
        # Padding changes the order of float32 sums, and nothing else.
        assert distance(together.latent_BND[row, :length], alone.latent_BND[0].numpy()) < 1e-5


def test_another_seed_says_something_else_and_the_same_seed_the_same() -> None:
    codes = [
        decoder()
        .decode(request([0], seed=seed, limit=30), Sampling(repetition_penalty=1.0))
        .code_BN
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(codes[0], codes[1])
    assert codes[0].shape != codes[2].shape or not np.array_equal(codes[0], codes[2])


def test_other_settings_seeds_limits_and_texts_of_a_rung_compile_nothing() -> None:
    decoder().decode(request([0]), GREEDY)
    before = decoder().traces
    decoder().decode(request([1], limit=9, seed=3), Sampling(temperature=0.5, top_k=3))
    list(decoder().stream(request([2]), Sampling(top_p=0.3), every=11))
    assert decoder().traces == before


def test_a_limit_ends_a_row_that_does_not_stop() -> None:
    spoken = decoder().decode(request([0], limit=4), GREEDY)
    assert spoken.code_BN.shape == (1, 4)
    assert spoken.length_B.numpy().tolist() == [4]
    assert spoken.stopped_B.numpy().tolist() == [False]


@pytest.mark.parametrize(("kind", "within"), [("bfloat16", 0.005), ("int8", 0.03)])
def test_fewer_bits_say_the_same_but_for_codes_that_are_nearly_tied(
    kind: Kind, within: float
) -> None:
    theirs = golden("gpt_generate")
    spoken = decoder(kind).decode(golden_request(), GREEDY)
    steps = spoken.code_BN.shape[1]
    differs_BN = spoken.code_BN.numpy() != theirs["out.codes_greedy"][:, :steps]
    for row, differs_N in enumerate(differs_BN):
        until = int(np.argmax(differs_N)) + 1 if differs_N.any() else steps
        logits_NV = theirs["out.step_logits"][row, :until]
        assert distance(spoken.logits_BNV[row, :until], logits_NV) < within
        if differs_N.any():  # Then either logit moved by no more than is allowed.
            second, first = np.sort(logits_NV[-1])[-2:]
            assert first - second < 2 * within * np.abs(logits_NV).max()
    assert differs_BN.any(1).sum() <= (0 if kind == "bfloat16" else 1)


def test_fewer_bits_take_less_memory() -> None:
    whole, half, quarter = (
        decoding_weights(tiny_gpt(), kind, DEVICE).blocks.qkv.kernel_OI.numpy().nbytes
        for kind in KINDS
    )
    assert (half, quarter) == (whole / 2, whole / 4)


@pytest.mark.parametrize(
    ("text", "limit", "says"),
    [
        ([5] * 40, None, "40 tokens"),
        ([5, 64], None, "beyond the 64"),
        ([5], 46, "limit of 46"),
        ([5], 0, "limit of 0"),
    ],
)
def test_what_cannot_be_spoken_is_said_before_anything_is_compiled(
    text: list[int], limit: int | None, says: str
) -> None:
    asked = Request(tf.zeros([1, 32, 128]), [text], limit=limit)
    fresh = Decoder(tiny_config(), decoder()._weights, DEVICE)
    with pytest.raises(TextError, match=says):
        fresh.decode(asked)
    assert fresh.traces == 0
