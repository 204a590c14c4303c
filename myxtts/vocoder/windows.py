"""The short pieces of clips that the vocoder learns from: latents, and the sound they stand for.

Latent i stands for the 1024 samples at 22.05 kHz from the 1024 i-th on. At 24 kHz the piece begins
with the frame of 256 samples in which its first latent begins, as it does in the sound of the
whole clip (lengths.py), so each row's frames lie between its latents where the clip's do.

The generator hears the piece alone, as in the paper: near its ends it hears nothing where the clip
would go on. With random weights that changes the first and the last frame by up to a tenth, and
those more than a latent further in by less than a hundredth. `reach` latents more on both sides
would spare the ends that, at half the cost of 16 latents again; and speech has ends as well.

Legend: B batch, L latents, W latents of a piece, D their width, S samples at 22.05 kHz, N samples
of a piece at 24 kHz, P samples of it at 22.05 kHz, with some around it.
"""

from typing import NamedTuple

import tensorflow as tf

from myxtts.audio import (
    CODEC_HZ,
    SAMPLES_PER_CODE,
    VOCODER_HZ,
    Draw,
    below,
    resample,
    size_of,
    uniform,
)
from myxtts.vocoder.lengths import DOWN, UP, samples_for_latents


class Windows(NamedTuple):
    """A piece of each clip."""

    latents_BWD: tf.Tensor
    wave_BN: tf.Tensor
    """float32: the real sound, at 24 kHz."""
    first_B: tf.Tensor
    """int64: each piece's first latent in its clip; the generator needs it."""
    weights_B: tf.Tensor
    """float32: 0 for a row that holds no clip, or one that is shorter than a piece."""


class Clips(NamedTuple):
    """Whole clips, padded."""

    latents_BLD: tf.Tensor
    wave_BS: tf.Tensor
    """At 22.05 kHz; what stands in the padding is not heard."""
    samples_B: tf.Tensor
    weights_B: tf.Tensor
    """0 for a row that holds no clip."""


def random_windows(clips: Clips, latents: int, key: tf.Tensor) -> Windows:
    """A piece of so many latents from anywhere in each clip."""
    share_B = uniform(key, Draw.WINDOW_START, [size_of(clips.wave_BS, 0)])
    return _cut(clips, latents, below(share_B, _starts(clips, latents)))


def fixed_windows(clips: Clips, latents: int) -> Windows:
    """For evaluation: the middle of each clip."""
    return _cut(clips, latents, (_starts(clips, latents) - 1) // 2)


def _starts(clips: Clips, latents: int) -> tf.Tensor:
    """At how many latents of each clip a piece may begin; 1 where the clip is too short."""
    return tf.maximum(_whole_latents(clips) - latents + 1, 1)


def _whole_latents(clips: Clips) -> tf.Tensor:
    """Those that the clip has all samples of: the last one's may end in padding."""
    return tf.cast(clips.samples_B, tf.int32) // SAMPLES_PER_CODE


def _cut(clips: Clips, latents: int, first_B: tf.Tensor) -> Windows:
    place_BW = first_B[:, None] + tf.range(latents)
    # Never beyond the tensor: there a gather gives zeros on a GPU and an error on a CPU.
    place_BW = tf.minimum(place_BW, size_of(clips.latents_BLD, 1) - 1)
    long_enough_B = _whole_latents(clips) >= latents
    return Windows(
        tf.gather(clips.latents_BLD, place_BW, batch_dims=1),
        _sound(clips.wave_BS, clips.samples_B, first_B, latents),
        tf.cast(first_B, tf.int64),
        tf.where(long_enough_B, clips.weights_B, 0.0),
    )


def _sound(wave_BS: tf.Tensor, samples_B: tf.Tensor, first_B: tf.Tensor, latents: int) -> tf.Tensor:
    """(B, N): the same as from all of the clip at 24 kHz, without resampling all of it."""
    count = samples_for_latents(latents)
    begin_B1 = samples_for_latents(first_B)[:, None]
    # The resampler repeats itself every DOWN samples in and UP out; one such period is taken
    # before the piece and one after it, for its filter to hear.
    period_B1 = begin_B1 // UP - 1
    periods = (count - 1) // UP + 4
    place_BP = period_B1 * DOWN + tf.range(periods * DOWN)
    in_clip_BP = (place_BP >= 0) & (place_BP < tf.cast(samples_B, tf.int32)[:, None])
    inside_BP = tf.clip_by_value(place_BP, 0, size_of(wave_BS, 1) - 1)
    piece_BP = tf.where(in_clip_BP, tf.gather(wave_BS, inside_BP, batch_dims=1), 0.0)
    resampled = resample(piece_BP, CODEC_HZ, VOCODER_HZ)
    return tf.gather(resampled, begin_B1 - period_B1 * UP + tf.range(count), batch_dims=1)
