"""The mel front ends of XTTS: of the DVAE, of the conditioning and of the speaker encoder.

All take (B, S) float sound at their own rate and give (B, T, M). Without lengths they equal the
reference on the tensor as it stands: a padded clip then differs from the same clip alone in its
last frames, at most two, whose windows reach the mirrored end. With lengths each clip's own
frames are those it has alone, whatever the padding held, and the frames after them are silence.
Legend: B batch, S samples, T frames, W window, F bins, M mel bands.
"""

import tensorflow as tf

from myxtts.audio.filters import (
    CONDITIONING,
    DVAE,
    SPEAKER,
    VOCODER,
    FrontEnd,
    filterbank,
    window,
)
from myxtts.audio.frames import frame, mirror_ends
from myxtts.audio.lengths import frames_for_samples
from myxtts.audio.waves import length_mask, mute_padding, size_of

QUIETEST = 1e-5
"""Power below it counts as silence."""
PREEMPHASIS = 0.97


def dvae_mel(
    wave_BS: tf.Tensor, mel_stats_M: tf.Tensor, lengths_B: tf.Tensor | None = None
) -> tf.Tensor:
    """What the DVAE turns into codes, from 22.05 kHz."""
    return divide_by_stats(log_mel(wave_BS, DVAE, lengths_B), mel_stats_M)


def conditioning_mel(
    wave_BS: tf.Tensor,
    mel_stats_M: tf.Tensor,
    lengths_B: tf.Tensor | None = None,
    front: FrontEnd = CONDITIONING,
) -> tf.Tensor:
    """What the conditioning encoder hears, from 22.05 kHz; CONDITIONING_V1 is XTTS-v1's."""
    return divide_by_stats(log_mel(wave_BS, front, lengths_B), mel_stats_M)


def speaker_mel(wave_BS: tf.Tensor, lengths_B: tf.Tensor | None = None) -> tf.Tensor:
    """Mel power for the speaker encoder, from 16 kHz, its high notes raised first."""
    return mel_power(emphasise(wave_BS, lengths_B), SPEAKER, lengths_B)


def vocoder_mel(wave_BS: tf.Tensor) -> tf.Tensor:
    """Natural log of the mel amplitude at 24 kHz: half of that of the power."""
    return tf.math.log(tf.maximum(mel_power(wave_BS, VOCODER), QUIETEST**2)) / 2


def speaker_features(power_BTM: tf.Tensor, frames_B: tf.Tensor | None = None) -> tf.Tensor:
    """Log power with zero mean and unit variance over each band of each clip's own frames."""
    frames = size_of(power_BTM, 1)
    if frames_B is None:
        frames_B = tf.repeat(frames, size_of(power_BTM, 0))
    mine_BT1 = length_mask(frames_B, frames)[..., None]
    count_B11 = tf.cast(tf.maximum(frames_B, 1), tf.float32)[:, None, None]
    log_BTM = tf.math.log(power_BTM + 1e-6)
    mean_B1M = tf.reduce_sum(tf.where(mine_BT1, log_BTM, 0.0), 1, keepdims=True) / count_B11
    centred_BTM = tf.where(mine_BT1, log_BTM - mean_B1M, 0.0)
    variance_B1M = tf.reduce_sum(tf.square(centred_BTM), 1, keepdims=True) / count_B11
    return centred_BTM * tf.math.rsqrt(variance_B1M + 1e-5)


def divide_by_stats(mel_BTM: tf.Tensor, mel_stats_M: tf.Tensor) -> tf.Tensor:
    """Log mels in units of each band's usual level; no mean is taken away."""
    return mel_BTM / mel_stats_M


def log_mel(wave_BS: tf.Tensor, front: FrontEnd, lengths_B: tf.Tensor | None = None) -> tf.Tensor:
    """Natural log of the mel power."""
    return tf.math.log(tf.maximum(mel_power(wave_BS, front, lengths_B), QUIETEST))


def mel_power(wave_BS: tf.Tensor, front: FrontEnd, lengths_B: tf.Tensor | None = None) -> tf.Tensor:
    """The power that each mel band hears in each frame."""
    filters_FM = filterbank(front)
    # The window's half is edge enough: a window shorter than the transform is padded with
    # zeros around it, and where it stands inside the transform changes only the phase.
    ends_BS = mirror_ends(wave_BS, front.window_length // 2, lengths_B)
    frames_BTW = frame(ends_BS, front.window_length, front.hop) * window(front)
    # The bins above the highest band are dropped before anything is computed from them.
    spectrum_BTF = tf.signal.rfft(frames_BTW, [front.fft])[..., : len(filters_FM)]
    power_BTF = tf.square(tf.math.real(spectrum_BTF)) + tf.square(tf.math.imag(spectrum_BTF))
    power_BTM = tf.matmul(power_BTF, filters_FM)
    if lengths_B is None:
        return power_BTM
    own_B = frames_for_samples(lengths_B, front.hop)
    return tf.where(length_mask(own_B, size_of(power_BTM, 1))[..., None], power_BTM, 0.0)


def emphasise(wave_BS: tf.Tensor, lengths_B: tf.Tensor | None = None) -> tf.Tensor:
    """Pre-emphasis; the sample before the first is the second one, as a mirror shows it."""
    if lengths_B is not None:
        wave_BS = mute_padding(wave_BS, lengths_B)
        lengths_B = tf.minimum(lengths_B, 2)
    before_BS = tf.concat([mirror_ends(wave_BS[:, :2], 1, lengths_B)[:, :1], wave_BS[:, :-1]], 1)
    return wave_BS - PREEMPHASIS * before_BS
