"""The discriminators: what they hear, what they give, and the norms of their kernels."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import WITHIN, Array, distance

from myxtts.config import DiscriminatorConfig, ModelConfig
from myxtts.pipeline import Program
from myxtts.vocoder import Discriminators, Opinion
from myxtts.vocoder.discriminators import PERIOD_STRIDES, SCALE_LAYERS, halved
from myxtts.vocoder.strided import SpectralNormed, Strided, WeightNormed, largest_singular
from myxtts.weights import named_weights

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

TINY = ModelConfig(size="tiny").discriminator
SMALLEST = DiscriminatorConfig(
    periods=(3,), period_width=2, scales=2, scale_width=8, scale_groups=2
)
MODEL = "/CPU:1"


def sound(samples: int = 1000, rows: int = 2) -> tf.Tensor:
    random = np.random.default_rng(3).standard_normal((rows, samples))
    with tf.device(MODEL):
        return tf.constant(random.astype(np.float32))


def made(config: DiscriminatorConfig, precision: str = "float32") -> Discriminators:
    with tf.device(MODEL):
        tf.keras.utils.set_random_seed(0)
        return Discriminators(config, precision)


@pytest.fixture(scope="module")
def smallest() -> Discriminators:
    return made(SMALLEST)


def built(layer: Strided) -> Any:
    with tf.device(MODEL):
        layer.build()
    return layer


def test_there_is_one_for_each_period_and_each_scale() -> None:
    opinions = made(TINY)(sound(1001))
    assert len(opinions) == 5 + 3
    assert [o.score_BPT1.shape[1] for o in opinions] == [2, 3, 5, 7, 11, 1, 1, 1]
    assert all(o.score_BPT1.shape[0] == 2 and o.score_BPT1.shape[-1] == 1 for o in opinions)
    layers = [len(PERIOD_STRIDES)] * 5 + [len(SCALE_LAYERS)] * 3
    assert [len(o.features) for o in opinions] == layers


def test_normal_and_big_have_the_widths_of_the_paper() -> None:
    assert ModelConfig(size="big").discriminator == ModelConfig().discriminator
    with tf.device(MODEL):
        network = Discriminators(DiscriminatorConfig(periods=(2,), scales=2))
    shapes = {name: tuple(v.shape) for name, v in named_weights(network).items()}
    assert shapes["period_2/layer_3/direction"] == (5, 512, 1024)
    assert shapes["scale_1/layer_1/direction"] == (41, 32, 128)
    assert shapes["scale_1/layer_4/direction"] == (41, 32, 1024)
    assert shapes["scale_0/layer_6/kernel"] == (5, 1024, 1024)


def test_every_layer_shortens_the_sound_by_its_stride(smallest: Discriminators) -> None:
    lanes, whole, half = smallest(sound(1000))
    assert [f.shape[2] for f in lanes.features] == [112, 38, 13, 5, 5]  # Of 334.
    assert [f.shape[2] for f in whole.features] == [1000, 500, 250, 63, 16, 16, 16]
    assert half.features[0].shape[2] == 501


def test_a_lane_hears_its_own_samples_and_no_other(smallest: Discriminators) -> None:
    wave = sound(999)
    with tf.device(MODEL), tf.GradientTape() as tape:
        tape.watch(wave)
        lane = smallest.periods[0](wave).score_BPT1[:, 1]
    heard = np.flatnonzero(np.abs(tape.gradient(lane, wave)).max(0))
    assert set(heard % 3) == {1}
    assert len(heard) == 333


def test_halving_takes_the_mean_of_four_samples_with_zeros_beyond_the_ends() -> None:
    with tf.device(MODEL):
        found = halved(tf.constant([[4.0, 8.0, 0.0, 4.0, 12.0, 0.0]]))
    assert found.numpy().tolist() == [[3.0, 4.0, 4.0, 3.0]]


@pytest.mark.parametrize("kind", [WeightNormed, SpectralNormed])
def test_groups_are_those_of_one_grouped_convolution(kind: type[Strided]) -> None:
    layer = built(kind(16, 24, "layer", taps=7, stride=2, groups=4))
    with tf.device(MODEL):
        x = tf.random.stateless_normal([2, 3, 50, 16], [1, 2])
        padding = [[0, 0], [0, 0], [3, 3], [0, 0]]
        together = tf.nn.conv2d(x, layer.kernel_KGO()[None], [1, 2], padding) + layer.bias
        assert distance(layer(x), together.numpy()) < WITHIN


def test_weight_norm_sets_the_length_of_every_output_channel() -> None:
    layer = built(WeightNormed(8, 6, "layer", taps=5))
    lengths = np.arange(1, 7, dtype=np.float32)
    layer.magnitude.assign(lengths)
    kernel = layer.kernel_KGO().numpy()
    assert np.sqrt(np.square(kernel).sum((0, 1))) == pytest.approx(lengths, rel=1e-5)


def test_kernels_start_about_as_long_as_their_directions() -> None:
    layer = built(WeightNormed(64, 128, "layer", taps=5))
    lengths = np.sqrt(np.square(layer.direction.numpy()).sum((0, 1)))
    assert lengths.mean() == pytest.approx(layer.magnitude.numpy()[0], rel=0.02)


def singular(kernel: Array) -> float:
    return float(np.linalg.svd(kernel.reshape(-1, kernel.shape[-1]), compute_uv=False)[0])


def test_spectral_norm_brings_the_largest_singular_value_near_one() -> None:
    layer = built(SpectralNormed(32, 48, "layer", taps=9))
    layer.kernel.assign(layer.kernel * 30)
    assert 1 <= singular(layer.kernel_KGO().numpy()) < 1.1


def test_the_largest_singular_value_is_found_and_its_gradient_with_it() -> None:
    left, _, right = np.linalg.svd(np.random.default_rng(1).standard_normal((12, 5)), False)
    matrix = (left * [5, 2, 1, 1, 1]) @ right
    with tf.device(MODEL), tf.GradientTape() as tape:
        given = tf.constant(matrix, tf.float32)
        tape.watch(given)
        found = largest_singular(given)
    assert found.numpy() == pytest.approx(5, rel=1e-4)
    assert distance(tape.gradient(found, given), np.outer(left[:, 0], right[0])) < 1e-3


def flat(opinions: list[Opinion]) -> list[Array]:
    return [each.numpy() for each in tf.nest.flatten(opinions)]


def test_xla_gives_the_same_opinions_and_calls_leave_no_trace() -> None:
    network = made(SMALLEST.model_copy(update={"scales": 1}))
    before = {name: v.numpy() for name, v in named_weights(network).items()}
    graph, xla = (Program(network.__call__, MODEL, jit=jit, name="judge") for jit in (False, True))
    pairs = zip(flat(graph(sound())), flat(xla(sound())), strict=True)
    assert max(distance(ours, theirs) for ours, theirs in pairs) < WITHIN
    assert all((before[name] == v.numpy()).all() for name, v in named_weights(network).items())


def test_every_weight_learns(smallest: Discriminators) -> None:
    with tf.device(MODEL), tf.GradientTape() as tape:
        losses = [tf.reduce_mean(tf.square(o.score_BPT1 - 1)) for o in smallest(sound())]
        loss = tf.add_n(losses)
    gradients = tape.gradient(loss, [v.value for v in smallest.trainable_variables])
    assert len(gradients) == len(named_weights(smallest))
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_sixteen_bits_are_close_and_scores_and_weights_keep_thirty_two(
    precision: str, smallest: Discriminators
) -> None:
    mixed = made(SMALLEST, precision)
    for name, weight in named_weights(mixed).items():
        weight.assign(named_weights(smallest)[name])
    found, wanted = mixed(sound()), smallest(sound())
    assert all(o.score_BPT1.dtype == tf.float32 for o in found)
    assert all(f.dtype == precision.removeprefix("mixed_") for o in found for f in o.features)
    assert all(v.dtype == "float32" for v in named_weights(mixed).values())
    pairs = zip(flat(found), flat(wanted), strict=True)
    assert max(distance(ours, theirs) for ours, theirs in pairs) < 0.05
