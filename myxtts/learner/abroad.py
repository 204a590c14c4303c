"""What a device found, averaged with what the same device found on every other machine.

Legend: N all numbers of a found, flat, and its weight behind them.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from myxtts.learner.copies import Found
from myxtts.pipeline import Program, Team, move


class Abroad:
    """One device's way to the other machines: one buffer goes and one comes back."""

    def __init__(self, device: str, team: Team) -> None:
        self._device = device
        self._team = team
        self._pack = Program(_packed, device, name="pack")
        self._unpack = Program(_unpacked, device, name="unpack")

    @property
    def programs(self) -> list[Program]:
        """Everything that it has compiled."""
        return [self._pack, self._unpack]

    def __call__(self, found: Found) -> Found:
        """The mean by weight over the machines; each one's samples, in the machines' order."""
        total_N = move(self._team.total(self._pack(found)), self._device)
        samples = {name: self._gathered(rows) for name, rows in found.samples.items()}
        return Found(*self._unpack(found, total_N))._replace(samples=samples)

    def _gathered(self, rows: tf.Tensor) -> tf.Tensor:
        return move(self._team.gathered(rows), self._device)


def chiefs(values: Mapping[str, Any], team: Team) -> dict[str, tf.Tensor]:
    """The chief's values of these variables, on the host."""
    heard = {}
    for name, variable in values.items():
        value = move(tf.convert_to_tensor(variable), "/CPU:0")
        with tf.device("/CPU:0"):
            flat = tf.reshape(value if team.chief else tf.zeros_like(value), [-1])
            heard[name] = tf.reshape(team.total(flat), value.shape)
    return heard


def digest_of(*groups: Mapping[str, Any]) -> bytes:
    """A sum of the bits of all these variables."""
    whole = hashlib.blake2b(digest_size=16)
    for group in groups:
        for name in sorted(group):
            array = tf.convert_to_tensor(group[name]).numpy()
            whole.update(f"{name} {array.dtype} {array.shape}".encode())
            whole.update(array.tobytes())
    return whole.digest()


def _packed(found: Found) -> tf.Tensor:
    leaves = tf.nest.flatten(_averaged(found))
    flat = [tf.reshape(tf.cast(leaf, tf.float32) * found.weight, [-1]) for leaf in leaves]
    return tf.concat([*flat, tf.reshape(found.weight, [1])], 0)


def _unpacked(found: Found, total_N: tf.Tensor) -> Found:
    averaged = _averaged(found)
    leaves = tf.nest.flatten(averaged)
    sizes = [int(leaf.shape.num_elements()) for leaf in leaves]
    *parts, weight = tf.split(total_N, [*sizes, 1])
    share = tf.math.divide_no_nan(1.0, weight[0])
    means = [
        tf.cast(tf.reshape(part * share, leaf.shape), leaf.dtype)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return found._replace(weight=weight[0], **tf.nest.pack_sequence_as(averaged, means))


def _averaged(found: Found) -> dict[str, Any]:
    return {"scalars": found.scalars, "gradients": found.gradients, "means": found.means}
