"""From latents to the generator's frames: how many, and which latents each one hears.

A latent stands for 1024 samples at 22.05 kHz; a frame is 256 samples at 24 kHz. So the latents are
stretched by 4, then by 24000 / 22050 = 160 / 147, each time along straight lines (XTTS.md §8).

Legend: B batch, L latents, S latents stretched, F frames, D width, N places, 1F and 1N: places
that are the same for all rows, or each row's own.
"""

from typing import Any

import tensorflow as tf

from myxtts.audio import CODEC_HZ, HOP, SAMPLES_PER_CODE, VOCODER_HZ
from myxtts.config import VocoderConfig
from myxtts.config.model import MEL_HOP

STEPS = SAMPLES_PER_CODE // HOP
"""Frames of the codec for each latent."""
UP, DOWN = VOCODER_HZ // 150, CODEC_HZ // 150  # 160 and 147: nothing more divides both.
SLOWEST = 0.05
FIRST_TAPS = LAST_TAPS = 7
"""Of the convolutions before the first stage and after the last."""

Length = Any
"""A whole number or a tensor of them."""


def frames_for_latents(latents: Length) -> Length:
    """Frames of 256 samples that so many latents become."""
    return STEPS * latents * UP // DOWN


def samples_for_latents(latents: Length) -> Length:
    """Samples at 24 kHz that so many latents become."""
    return frames_for_latents(latents) * MEL_HOP


def latents_at_speed(latents_BLD: tf.Tensor, speed: float) -> tf.Tensor:
    """More latents for slower speech, fewer for faster; no slower than a twentieth."""
    factor = 1 / max(speed, SLOWEST)
    length = tf.cast(tf.floor(tf.cast(_size(latents_BLD), tf.float64) * factor), tf.int32)
    place_L = tf.cast(tf.range(tf.maximum(length, 1)), tf.float64)
    return _between(latents_BLD, (place_L + 0.5) / factor - 0.5)


def frames_of(latents_BLD: tf.Tensor, first: Length = 0, frames: Length | None = None) -> tf.Tensor:
    """(B, F, D), from the frame with which latent `first` of the speech, here the 0th, begins.

    `first` is one number, or one for each row.
    """
    size = _size(latents_BLD)
    place_S = tf.cast(tf.range(STEPS * size), tf.float64)
    stretched_BSD = _between(latents_BLD, (place_S + 0.5) / STEPS - 0.5)
    count = frames_for_latents(size) if frames is None else frames
    first_1 = tf.cast(first, tf.int32)[..., None]
    place_1F = frames_for_latents(first_1) + tf.range(count)
    # In whole numbers, so that a window's frames are those of the whole, bit for bit.
    whole_1F = (2 * place_1F + 1) * DOWN - UP - 2 * UP * STEPS * first_1
    return _between(stretched_BSD, tf.cast(whole_1F, tf.float64) / (2 * UP))


def reach(config: VocoderConfig) -> int:
    """Latents on each side of its own that a sample depends on: outside, nothing is heard.

    A window with so many latents more on both sides gives the samples of the whole.
    """
    pairs = sum(config.residual_dilations) + len(config.residual_dilations)
    unit = max(config.residual_kernels) // 2 * pairs
    side = LAST_TAPS // 2
    stages = zip(config.upsample_rates, config.upsample_kernels, strict=True)
    for rate, taps in reversed(list(stages)):
        side = (side + unit + (taps + rate) // 2 - 1) // rate
    side += FIRST_TAPS // 2
    # A latent may begin at any of DOWN places between two frames.
    return max(_widest(latent, side) for latent in range(DOWN))


def _widest(latent: int, side: int) -> int:
    """Latents that the frames of one latent hear, with `side` frames more, before or after it."""
    first = _step_before(frames_for_latents(latent) - side)
    last = _step_before(frames_for_latents(latent + 1) - 1 + side) + 1
    return max(latent - _latent_before(first), _latent_before(last) + 1 - latent)


def _step_before(frame: int) -> int:
    """The step that lies before the frame, or under it, among the stretched latents."""
    return ((2 * frame + 1) * DOWN - UP) // (2 * UP)


def _latent_before(step: int) -> int:
    return (2 * step + 1 - STEPS) // (2 * STEPS)


def _between(x_BTD: tf.Tensor, position_1N: tf.Tensor) -> tf.Tensor:
    """(B, N, D): on the straight line from each vector to the next; the ends go on as they are."""
    own = len(position_1N.shape) - 1  # 1 where each row has places of its own.
    last = tf.cast(_size(x_BTD) - 1, tf.float64)
    inside_1N = tf.clip_by_value(position_1N, tf.zeros([], tf.float64), last)
    low_1N = tf.floor(inside_1N)
    weight_1N1 = tf.cast(inside_1N - low_1N, x_BTD.dtype)[..., None]
    after_1N = tf.minimum(low_1N + 1, last)
    before_BND = tf.gather(x_BTD, tf.cast(low_1N, tf.int32), axis=1, batch_dims=own)
    after_BND = tf.gather(x_BTD, tf.cast(after_1N, tf.int32), axis=1, batch_dims=own)
    return before_BND + (after_BND - before_BND) * weight_1N1


def _size(x_BTD: tf.Tensor) -> Length:
    return x_BTD.shape[1] if x_BTD.shape[1] is not None else tf.shape(x_BTD)[1]
