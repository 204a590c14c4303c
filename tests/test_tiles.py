"""Convolution with fewer products gives what the plain one gives."""

import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import distance

from myxtts.layers import Convolution, convolve
from myxtts.layers.tiles import convolve_tiles, tiled_kernel

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

CHANNELS = 32


def noise(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(sum(shape)).standard_normal(shape), tf.float32)


@pytest.mark.parametrize("taps", [3, 5, 7, 11])
@pytest.mark.parametrize("dilation", [1, 3, 5])
@pytest.mark.parametrize("time", [1, 40, 43])
def test_tiles_give_the_plain_convolution(taps: int, dilation: int, time: int) -> None:
    x, kernel = noise(2, time, CHANNELS), noise(taps, CHANNELS, 48)
    plain = convolve(x, kernel, dilation=dilation).numpy()
    tiles = convolve_tiles(x, tiled_kernel(kernel), taps, dilation)
    assert distance(tiles, plain) < 1e-5


def test_they_save_about_half_the_products() -> None:
    shares = [np.prod(tiled_kernel(noise(taps, 1, 1)).shape) / (4 * taps) for taps in (3, 7, 11)]
    assert shares == [6 / 12, 14 / 28, 21 / 44]


def test_batch_and_length_may_be_unknown() -> None:
    kernel = noise(7, CHANNELS, CHANNELS)
    shape = tf.TensorSpec([None, None, CHANNELS])
    function = tf.function(lambda x: convolve_tiles(x, tiled_kernel(kernel), 7, 3), autograph=False)
    x = noise(2, 50, CHANNELS)
    tiles = function.get_concrete_function(shape)(x)
    assert distance(tiles, convolve(x, kernel, dilation=3).numpy()) < 1e-5


@pytest.mark.parametrize(("width", "stride", "rank"), [(32, 1, 4), (16, 1, 3), (32, 2, 3)])
def test_a_layer_is_tiled_only_where_that_pays(width: int, stride: int, rank: int) -> None:
    layers = [
        Convolution(CHANNELS, width, name, taps=3, stride=stride, tiled=name == "tiled")
        for name in ("plain", "tiled")
    ]
    for layer in layers:
        layer.build()
    plain, tiled = layers
    tiled.take(plain)
    x = noise(1, 30, CHANNELS)
    assert len(tiled.kernel.shape) == rank
    assert distance(tiled(x), plain(x).numpy()) < 1e-5
