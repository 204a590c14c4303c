"""One round between the vocoder and its discriminators.

Legend: B batch, N samples at 24 kHz, S width of the speaker vector.
"""

from typing import NamedTuple

import tensorflow as tf

from myxtts.vocoder import losses
from myxtts.vocoder.discriminators import Discriminators
from myxtts.vocoder.generator import Vocoder
from myxtts.vocoder.windows import Windows


class Players(NamedTuple):
    """Who takes part."""

    vocoder: Vocoder
    discriminators: Discriminators
    hear: losses.Hear | None = None
    """The frozen speaker encoder; None leaves its loss out."""


class Round(NamedTuple):
    """What one round tells; every loss a float32 scalar."""

    vocoder: tf.Tensor
    """Its loss, for the gradients of its own weights alone."""
    discriminators: tf.Tensor
    """Theirs, likewise."""
    scalars: dict[str, tf.Tensor]
    """The losses that these are made of, before they are weighed."""
    made_BN: tf.Tensor
    """float32: the sound that was judged."""


def play(players: Players, windows: Windows, speaker_BS: tf.Tensor) -> Round:
    """Both players' losses from one pass.

    The discriminators hear the made sound once, for both losses: each player's gradients must be
    taken of its own weights, as a persistent tape does, and are then those of two passes with the
    sound held fixed in the discriminators'.
    """
    made_BN = made_sound(players.vocoder, windows, speaker_BS)
    real_BN, weights_B = windows.wave_BN, windows.weights_B
    real = players.discriminators(real_BN)
    made = players.discriminators(made_BN)
    scalars = {
        "loss_real": losses.real_loss(real, weights_B),
        "loss_made": losses.made_loss(made, weights_B),
        "loss_adversarial": losses.adversarial_loss(made, weights_B),
        "loss_features": losses.feature_loss(real, made, weights_B),
        "loss_mel": losses.mel_loss(made_BN, real_BN, weights_B),
    }
    if players.hear is not None:
        scalars["loss_speaker"] = losses.speaker_loss(players.hear, made_BN, real_BN, weights_B)
    discriminators = scalars["loss_real"] + scalars["loss_made"]
    return Round(_vocoder_loss(scalars), discriminators, scalars, made_BN)


def made_sound(vocoder: Vocoder, windows: Windows, speaker_BS: tf.Tensor) -> tf.Tensor:
    """float32 (B, N): as many samples as the real sound."""
    return vocoder(windows.latents_BWD, speaker_BS, first=windows.first_B)


def _vocoder_loss(scalars: dict[str, tf.Tensor]) -> tf.Tensor:
    loss = (
        scalars["loss_adversarial"]
        + losses.FEATURE_WEIGHT * scalars["loss_features"]
        + losses.MEL_WEIGHT * scalars["loss_mel"]
    )
    if "loss_speaker" in scalars:
        loss += losses.SPEAKER_WEIGHT * scalars["loss_speaker"]
    return loss
