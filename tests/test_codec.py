"""The DVAE against the reference's numbers, in a graph and under XLA.

tests/golden/dvae.safetensors holds the output of coqui-tts 0.28.0 (XTTS.md §7).
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import WITHIN, distance, give_golden_weights, golden

from myxtts.audio import codes_for_frames
from myxtts.codec import CodebookState, Codec, CodecPass, moved, nearest
from myxtts.config import CodecConfig
from myxtts.importer.names import codec_names
from myxtts.pipeline import Program
from myxtts.weights import named_weights

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

CONFIG = CodecConfig(codes=64, code_width=32, width=32)
GOLDEN = golden("dvae")
DEVICE = "/CPU:1"


def codec(precision: str = "float32") -> Codec:
    with tf.device(DEVICE):
        made = Codec(CONFIG, precision=precision)
        give_golden_weights(made, "weights_dvae", codec_names(CONFIG))
    return made


def on_device(name: str) -> Any:
    with tf.device(DEVICE):
        return tf.constant(time_first(name) if GOLDEN[name].ndim > 2 else GOLDEN[name])


def time_first(name: str) -> Any:
    return GOLDEN[name].transpose(0, 2, 1)


class Found(NamedTuple):
    """All that one compiled program makes of the golden mels."""

    vectors: tf.Tensor
    codes: tf.Tensor
    codes_odd: tf.Tensor
    decoded: tf.Tensor
    before_last: tf.Tensor
    told: CodecPass
    gradients: dict[str, tf.Tensor]
    moved: CodebookState


@pytest.fixture(scope="module", params=[False, True], ids=["graph", "xla"])
def found(request: pytest.FixtureRequest) -> Found:
    made = codec()
    program = Program(lambda *mels: everything(made, *mels), DEVICE, jit=request.param)
    results = program(on_device("in.mel"), on_device("in.mel_odd"))
    assert isinstance(results, Found)
    return results


def everything(made: Codec, mel: tf.Tensor, odd: tf.Tensor) -> Found:
    codes = made.encode(mel)
    weights = {n: v for n, v in named_weights(made).items() if v.trainable}
    with tf.GradientTape() as tape:
        told = made.reconstruct(mel)
        loss = told.reconstruction + told.commitment
    gradients = tape.gradient(loss, [v.value for v in weights.values()])
    return Found(
        vectors=made.encoder(mel),
        codes=codes,
        codes_odd=made.encode(odd),
        decoded=made.decode(codes),
        before_last=made.decoder.before_last(made.codebook.look_up(codes)),
        told=told,
        gradients=dict(zip(weights, gradients, strict=True)),
        moved=moved(made.codebook.state, told.vectors_BNC, told.codes_BN),
    )


def test_codes_are_the_references_and_so_is_what_chose_them(found: Found) -> None:
    assert np.array_equal(found.codes, GOLDEN["out.codes"])
    assert distance(found.vectors, time_first("out.encoder_out")) < WITHIN


def test_an_odd_number_of_frames_gives_the_references_codes(found: Found) -> None:
    assert np.array_equal(found.codes_odd, GOLDEN["out.codes_odd"])
    assert codes_for_frames(GOLDEN["in.mel_odd"].shape[2]) == found.codes_odd.shape[1]


def test_mels_decoded_from_codes_are_the_references(found: Found) -> None:
    assert distance(found.decoded, time_first("out.decoded")) < WITHIN
    assert distance(found.before_last, time_first("out.decoded_before_last_layer")) < WITHIN


def test_losses_are_the_references(found: Found) -> None:
    for when in ("eval_recon_loss_elementwise_mean", "train_recon_loss_mean"):
        assert distance(found.told.reconstruction, GOLDEN[f"out.{when}"]) < WITHIN
    for when in ("eval_commitment_loss", "train_commitment_loss"):
        assert distance(found.told.commitment, GOLDEN[f"out.{when}"]) < WITHIN


def test_a_training_pass_tells_the_references_mel(found: Found) -> None:
    assert distance(found.told.mel_BTM, time_first("out.train_out")) < WITHIN
    assert np.array_equal(found.told.codes_BN, found.codes)


def test_gradients_are_the_references(found: Found) -> None:
    names = {f"out.train_grad.{name.theirs}": name for name in codec_names(CONFIG)}
    theirs = [key for key in GOLDEN if key.startswith("out.train_grad.")]
    for key in theirs:
        ours = found.gradients[names[key].ours].numpy()
        assert distance(names[key].layout.theirs(ours), GOLDEN[key]) < WITHIN, key
    assert len(theirs) == 4


def test_the_codebook_moves_as_the_references(found: Found) -> None:
    assert distance(found.moved.vectors_KC, GOLDEN["out.train_embed_after"].T) < WITHIN
    assert distance(found.moved.counts_K, GOLDEN["out.train_cluster_size_after"]) < WITHIN
    assert distance(found.moved.sums_KC, GOLDEN["out.train_embed_avg_after"].T) < WITHIN


def test_the_codebook_has_no_gradient_and_every_other_weight_has_one(found: Found) -> None:
    assert not any("codebook" in name for name in found.gradients)
    assert all(np.abs(gradient).max() > 0 for gradient in found.gradients.values())


def test_the_nearest_code_is_that_of_every_distance_by_itself() -> None:
    random = np.random.default_rng(3)
    vectors = random.standard_normal((2, 50, 32)).astype(np.float32)
    book = random.standard_normal((64, 32)).astype(np.float32)
    apart = np.square(vectors[:, :, None].astype(np.float64) - book).sum(-1)
    codes = nearest(tf.constant(vectors), tf.constant(book))
    assert np.array_equal(codes, apart.argmin(2))


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_kernels_in_tiles_give_the_references_codes_and_mels(jit: bool) -> None:
    with tf.device(DEVICE):
        quick = codec().tiled()
    program = Program(
        lambda mel: (quick.encode(mel), quick.decode(quick.encode(mel))), DEVICE, jit=jit
    )
    codes, decoded = program(on_device("in.mel"))
    assert np.array_equal(codes, GOLDEN["out.codes"])
    assert distance(decoded, time_first("out.decoded")) < WITHIN
    # A tile has six points where a kernel has three taps.
    assert named_weights(quick)["encoder/residual_0/conv_0/kernel"].shape == (1, 6, 64, 64)


def test_of_two_codes_at_the_same_place_the_first_is_taken() -> None:
    book = tf.constant([[5.0, 0.0], [1.0, 2.0], [1.0, 2.0]])
    assert nearest(tf.constant([[1.0, 2.0]]), book).numpy().tolist() == [1]


def test_any_length_runs_in_one_trace() -> None:
    made = codec()
    shape = tf.TensorSpec([None, None, 80])
    graph = tf.function(made.encode, autograph=False).get_concrete_function(shape)
    with tf.device(DEVICE):
        assert np.array_equal(graph(on_device("in.mel")), GOLDEN["out.codes"])
        assert np.array_equal(graph(on_device("in.mel_odd")), GOLDEN["out.codes_odd"])


def test_frames_that_do_not_divide_by_four_come_back_as_many() -> None:
    with tf.device(DEVICE):
        told = codec().reconstruct(on_device("in.mel_odd"))
    assert told.mel_BTM.shape == (1, 97, 80)
    assert np.array_equal(told.codes_BN, GOLDEN["out.codes_odd"])
