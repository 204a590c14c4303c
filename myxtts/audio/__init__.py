"""Tensors of sound: mel front ends, resampling, slices and random changes.

Pure TensorFlow on batches: no Python for each clip, the same eagerly, in a graph, under XLA
and inside tf.data. Knows nothing of devices.
"""

from myxtts.audio.augment import augment
from myxtts.audio.filters import (
    CONDITIONING,
    CONDITIONING_V1,
    DVAE,
    SPEAKER,
    VOCODER,
    FrontEnd,
)
from myxtts.audio.keys import Draw, below, step_key, uniform
from myxtts.audio.lengths import (
    CODEC_HZ,
    HOP,
    SAMPLES_PER_CODE,
    SPEAKER_HZ,
    VOCODER_HZ,
    codes_for_frames,
    codes_for_samples,
    frames_for_samples,
    resampled_length,
)
from myxtts.audio.mel import (
    conditioning_mel,
    divide_by_stats,
    dvae_mel,
    log_mel,
    mel_power,
    speaker_features,
    speaker_mel,
    vocoder_mel,
)
from myxtts.audio.resample import resample
from myxtts.audio.slices import Slices, fixed_slices, random_slices
from myxtts.audio.waves import length_mask, mute_padding, size_of, to_float

__all__ = [
    "CODEC_HZ",
    "CONDITIONING",
    "CONDITIONING_V1",
    "DVAE",
    "HOP",
    "SAMPLES_PER_CODE",
    "SPEAKER",
    "SPEAKER_HZ",
    "VOCODER",
    "VOCODER_HZ",
    "Draw",
    "FrontEnd",
    "Slices",
    "augment",
    "below",
    "codes_for_frames",
    "codes_for_samples",
    "conditioning_mel",
    "divide_by_stats",
    "dvae_mel",
    "fixed_slices",
    "frames_for_samples",
    "length_mask",
    "log_mel",
    "mel_power",
    "mute_padding",
    "random_slices",
    "resample",
    "resampled_length",
    "size_of",
    "speaker_features",
    "speaker_mel",
    "step_key",
    "to_float",
    "uniform",
    "vocoder_mel",
]
