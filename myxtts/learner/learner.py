"""Copies of the network on the model devices, kept equal: one step of learning.

With several devices each takes care of a part of the weights: it gathers that part's gradients,
moves the weights, and hands them to the others. So the optimizer's memory is shared out, and
every copy has the same bits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import keras
import tensorflow as tf

from myxtts.batch import Batch
from myxtts.learner.abroad import Abroad, chiefs, digest_of
from myxtts.learner.copies import At, Copy, Found, Make, Named, tf_value
from myxtts.learner.student import Moment
from myxtts.optimizer import Habits
from myxtts.pipeline import (
    ALONE_TEAM,
    Hands,
    OutOfMemoryError,
    Program,
    Team,
    move,
    share_of,
)


class Restored(Protocol):
    """A checkpoint."""

    def restore(self, targets: Mapping[str, Mapping[str, Any]], assign: Any) -> None:
        """Gives every variable its array."""


class Settings(NamedTuple):
    """How the learner learns."""

    habits: Habits
    seed: int
    jit: bool
    """Whether XLA compiles the gradients."""


class Learner:
    """Learns a step from one batch or, with accumulation, from several."""

    def __init__(
        self, make: Make, devices: Sequence[str], settings: Settings, team: Team = ALONE_TEAM
    ) -> None:
        self.copies = [_copy(make, device, settings) for device in devices]
        self._first = self.copies[0]
        sizes = {name: int(w.shape.num_elements()) for name, w in _tensors(self._first).items()}
        self._owned = share_out(sizes, len(devices))
        for copy, owned in zip(self.copies, self._owned, strict=True):
            copy.prepare(owned, settings.habits)
        self._sum = Program(_summed, devices[0], name="sum")
        self._team = team
        self._abroad = [Abroad(device, team) for device in devices]
        self.jit = settings.jit
        self.shrunk: Callable[[OutOfMemoryError, int], None] | None = None
        """Told when a batch must be learned in pieces; without it, no room is an error."""
        self._pieces: dict[tuple[Any, ...], int] = {}
        self.level()

    def __call__(self, batches: Sequence[Hands], at: At) -> dict[str, tf.Tensor]:
        """One update; the scalars are still on the first model device."""
        found = [self._taught(copy, batches, place, at) for place, copy in enumerate(self.copies)]
        if len(self.copies) > 1:
            found = list(self._shared(found))
        if not self._team.alone:
            found = [abroad(own) for abroad, own in zip(self._abroad, found, strict=True)]
        return self._update(found, batches[0][0].number, at)

    @property
    def programs(self) -> list[Program]:
        """Everything that is compiled."""
        own = [program for copy in self.copies for program in copy.programs]
        abroad = [program for each in self._abroad for program in each.programs]
        return [*own, self._sum, *abroad]

    @property
    def state(self) -> dict[str, dict[str, Any]]:
        """Every variable that a resumed run needs, by group and name."""
        optimizer: dict[str, Any] = {}
        averages: dict[str, Any] = {}
        for copy in reversed(self.copies):  # What all have alike is the first one's.
            optimizer |= copy.optimizer.variables | copy.scale.variables
            averages |= copy.optimizer.average
        groups = {
            "weights": dict(self._first.weights),
            "ema": averages,
            "state": dict(self._first.student.state),
            "optimizer": optimizer,
        }
        return {name: group for name, group in groups.items() if group}

    @property
    def frozen(self) -> dict[str, Any]:
        """The weights that stay as they are, which no checkpoint holds."""
        return dict(self._first.frozen)

    @property
    def described(self) -> str:
        """How many numbers learn, for the log."""
        learning, frozen = (
            sum(int(weight.shape.num_elements()) for weight in map(tf_value, weights.values()))
            for weights in (self._first.weights, self._first.frozen)
        )
        share = f", {100 * learning / (learning + frozen):.2f} % of the weights" if frozen else ""
        return f"{learning:,} numbers learn{share}"

    @property
    def finders(self) -> list[Program]:
        """What finds gradients, as it is compiled now."""
        return [copy.finders[self.jit] for copy in self.copies]

    def use(self, *, jit: bool) -> None:
        """Takes XLA's programs for the gradients, or graph mode's."""
        self.jit = jit

    def try_out(self, hands: Hands) -> Any:
        """Finds a batch's gradients and does nothing with them: compiles, and can be timed."""
        at = At(step=1, share=0.0, rate=0.0)
        return [self._find(c, hand, at).weight for c, hand in zip(self.copies, hands, strict=True)]

    def restore(self, stored: Restored) -> None:
        """Takes over a saved state; raises before anything is changed if it does not fit."""
        stored.restore(self.state, _assign)
        self.level()

    def level(self) -> None:
        """Gives the other copies the first one's weights, after a start or a restore."""
        for copy in self.copies[1:]:
            for name, variable in self._first.alike.items():
                value = move(tf.convert_to_tensor(variable), copy.device)
                with tf.device(copy.device):
                    copy.alike[name].assign(value)

    def digest(self, *groups: str) -> bytes:
        """A sum of the bits of these groups of the state, or of all of it and what is frozen."""
        state = {**self.state, "frozen": self.frozen}
        return digest_of(*(state[name] for name in groups or state if name in state))

    def follow_chief(self) -> None:
        """Takes over the chief's weights on every machine: there they may round otherwise."""
        for name, value in chiefs(self._first.alike, self._team).items():
            _assign(self._first.alike[name], move(value, self._first.device))
        self.level()

    def judge(self, hands: Hands) -> tuple[tf.Tensor, Named]:
        """How many held-out clips a batch has, and their losses, on the first device."""
        found = [c.judge(hand.tensors) for c, hand in zip(self.copies, hands, strict=True)]
        if len(found) > 1:
            found = [self._first.mean([move(each, self._first.device) for each in found])]
        return found[0].weight, found[0].scalars

    def _taught(self, copy: Copy, batches: Sequence[Hands], place: int, at: At) -> Found:
        """What one device found in its share of all the batches of a step, one after the other."""
        found = self._find(copy, batches[0][place], at)
        if len(batches) == 1:
            return found
        total = copy.weigh(found)
        for hands in batches[1:]:
            total = copy.add(total, self._find(copy, hands[place], at))
        return _found(copy.divide(total))

    def _find(self, copy: Copy, hand: Batch, at: At) -> Found:
        """In as many pieces as a batch of this size needs to find room."""
        moment, size = copy.moment(hand.number, at), _size(hand)
        while True:
            try:
                return self._found_in(copy, hand, self._pieces.get(size, 1), moment)
            except OutOfMemoryError as error:
                if self.shrunk is None:
                    raise
                self._pieces[size] = _more_pieces(len(hand.clips), self._pieces.get(size, 1), error)
                self.shrunk(error, self._pieces[size])

    def _found_in(self, copy: Copy, hand: Batch, pieces: int, moment: Moment) -> Found:
        find = copy.finders[self.jit]
        if pieces == 1:
            return _found(find(hand.tensors, moment))
        find.close(closed=False)  # The pieces are of a shape of their own.
        total = None
        for piece in range(pieces):
            found = _found(find(share_of(hand, piece, pieces).tensors, moment))
            total = copy.add(total, found) if total else copy.weigh(found)
        return _found(copy.divide(total))

    def _shared(self, found: Sequence[Found]) -> Iterator[Found]:
        """Each device's part of the gradients, and all of the rest, averaged over the devices."""
        for copy, owned in zip(self.copies, self._owned, strict=True):
            parts = [
                each._replace(gradients={name: each.gradients[name] for name in owned})
                for each in found
            ]
            yield copy.mean([move(part, copy.device) for part in parts])

    def _update(self, found: Sequence[Found], number: int, at: At) -> dict[str, tf.Tensor]:
        lengths = self._lengths(found)
        owned: list[Named] = []
        scalars: dict[str, tf.Tensor] = {}
        for copy, each, length in zip(self.copies, found, lengths, strict=True):
            with tf.device(copy.device):
                rate = tf.constant(at.rate, tf.float32)
            values, said = copy.update(each, length, copy.moment(number, at), rate)
            owned.append(values)
            scalars = scalars or {**each.scalars, **said}
        for copy in self.copies:
            for other, values in zip(self.copies, owned, strict=True):
                if other is not copy:
                    copy.take_over(move(values, copy.device))
        return scalars

    def _lengths(self, found: Sequence[Found]) -> list[Named]:
        """For every device the squared lengths of all gradients, wherever they lie."""
        own = [c.lengths(f.gradients) for c, f in zip(self.copies, found, strict=True)]
        if len(own) == 1:
            return own
        whole = self._sum([move(each, self._first.device) for each in own])
        return [move(whole, copy.device) for copy in self.copies]


def share_out(sizes: Mapping[str, int], shares: int) -> list[list[str]]:
    """The names in as many parts of nearly equal size; the largest first, to the lightest part."""
    parts: list[list[str]] = [[] for _ in range(shares)]
    loads = [0] * shares
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        lightest = loads.index(min(loads))
        parts[lightest].append(name)
        loads[lightest] += sizes[name]
    return parts


def _copy(make: Make, device: str, settings: Settings) -> Copy:
    keras.utils.set_random_seed(settings.seed)
    with tf.device(device):
        return Copy(make(device), device, settings.seed, settings.habits)


def _found(results: Any) -> Found:
    """What a program gives is untyped."""
    return Found(*results)


def _size(hand: Batch) -> tuple[Any, ...]:
    """What tells one shape of batch from another."""
    return tuple(tuple(tensor.shape) for tensor in tf.nest.flatten(hand.tensors))


def _more_pieces(rows: int, pieces: int, error: OutOfMemoryError) -> int:
    """The next number that shares the rows equally; a single row cannot be shared."""
    more = next((n for n in range(pieces + 1, rows + 1) if rows % n == 0), 0)
    if not more:
        raise error
    return more


def _assign(variable: Any, array: Any) -> None:
    # Under the variable's own device: an assigned array goes by the present one.
    with tf.device(tf_value(variable).device):
        variable.assign(array)


def _tensors(copy: Copy) -> dict[str, tf.Tensor]:
    return {name: tf.convert_to_tensor(weight) for name, weight in copy.weights.items()}


def _summed(each: Sequence[Named]) -> Named:
    return {name: tf.add_n([lengths[name] for lengths in each]) for name in each[0]}
