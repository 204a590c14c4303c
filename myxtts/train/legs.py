"""A stage's training as a sequence of legs, each in one arrangement of the devices.

Most arrangements have one leg. `hybrid` has two: in the first epoch the data devices encode and
the codes are kept; from the second on they are model devices like the others. A leg goes on from
the checkpoint that the one before it left, as any resumed run does.

Batches are numbered over the whole run: `shift` leads from the numbers of a leg's own plan, in
which the first epoch begins at 0, to those.
"""

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from myxtts.cache import CodeCache, cache_folder, open_cache
from myxtts.clips import ClipSound, Part, open_part
from myxtts.config import Config
from myxtts.devices import DevicePlan, Say, explicit_moves
from myxtts.errors import UserError
from myxtts.pipeline import Program
from myxtts.plan import ALONE, Worker, make_plan
from myxtts.reader import Reader
from myxtts.stages import Encoding, Stage
from myxtts.text import Tokenizer
from myxtts.train.keeping import Shelf
from myxtts.train.supply import Supply
from myxtts.view.live import View

CACHING = ("cached", "hybrid")
FOLDER = "cache"
KEEPING = frozenset(["gpt"])
"""The stages that are an `Encoding`."""

Supplies = tuple[Supply, Supply | None]
"""What is learned from, and what judges."""
Sounds = list[ClipSound]
"""One for all model devices, or one for each of them."""


@dataclass(frozen=True)
class Leg:
    """A stretch of a stage's steps."""

    plan: DevicePlan
    steps: int
    """Of the whole run, over all legs."""
    supplies: Callable[[View, range], AbstractContextManager[Supplies]]
    """Opens what the batches with these numbers of the leg's own plan need."""
    until: int | None = None
    """The leg's last step, where others come after it."""
    shift: int = 0

    def own(self, numbers: range) -> range:
        """The run's numbers as the leg's plan counts them."""
        return range(numbers.start - self.shift, numbers.stop - self.shift)


class Clips(NamedTuple):
    """What there is to learn from."""

    parts: tuple[Part, Part]
    """To learn from, and to judge; the second may be empty."""
    tokenizer: Tokenizer | None
    worker: Worker = ALONE
    """This machine, of those that share the clips."""


def legs_of(
    stage: Stage, config: Config, plan: DevicePlan, clips: Clips, run: Path, say: Say
) -> list[Leg]:
    """The legs of a stage; the settings say how many steps they have together."""
    if not isinstance(stage, Encoding):
        plan = without_codes(plan, stage.name, say)
    cache = config.data.cache or run / FOLDER
    if clips.worker.index:  # One process writes to a cache.
        cache /= f"worker-{clips.worker.index}"
    way = _Way(stage, config, cache, clips, say)
    sounds = way.sounds(plan)
    batches = config.training.gradient_accumulation_steps
    epoch, epochs = sounds[0][0].reader.plan.batches_per_epoch, config.training.epochs
    if plan.arrangement != "hybrid":
        steps = way.steps(max(1, epochs * epoch // batches))
        supplies = way.told if plan.arrangement == "cached" else way.live
        return [Leg(plan, steps, partial(supplies, plan, sounds))]
    joined = together(plan)
    more = tuple(way.shared(each, joined) for each in sounds)
    # To the end of a step, be it with clips of the second epoch.
    until, later = -(-epoch // batches), more[0][0].reader.plan.batches_per_epoch
    steps = way.steps(until + (epochs - 1) * later // batches)
    first = Leg(plan, steps, partial(way.kept, plan, sounds), until)
    if steps <= until:
        return [replace(first, until=None)]
    say(f"hybrid: {until} steps as split, then {steps - until} on all {len(joined.models)} devices")
    second = partial(way.told, joined, more, encoders=plan.datas, alike=sounds)
    return [first, Leg(joined, steps, second, shift=until * batches - later)]


def check_codes_last(config: Config, plan: DevicePlan, stages: Sequence[str]) -> None:
    """Raises where codes are to be kept of clips that are never twice the same."""
    changed = [
        f"data.augment.{name}={share:g}"
        for name in ("speed", "band_limit", "noise", "gain")
        if (share := getattr(config.data.augment, name))
    ]
    if changed and plan.arrangement in CACHING and not KEEPING.isdisjoint(stages):
        raise UserError(
            f"arrangement {plan.arrangement} keeps each clip's codes, and {', '.join(changed)} "
            "changes the clips at every epoch",
            "--arrangement split encodes them anew at every step; or leave data.augment out",
        )


def without_codes(plan: DevicePlan, stage: str, say: Say) -> DevicePlan:
    """The arrangement of a stage that has nothing to keep."""
    if plan.arrangement not in CACHING:
        return plan
    several = "parallel" if len(plan.models) > 1 else "single"
    instead = "split" if plan.arrangement == "hybrid" else several
    say(f"{stage}: this stage keeps no codes; it runs as {instead}, not {plan.arrangement}")
    return replace(plan, arrangement=instead)


def together(plan: DevicePlan) -> DevicePlan:
    """All devices as model devices, each of which prepares its own share."""
    numbers = (*plan.data_indices, *plan.model_indices)
    return replace(
        plan,
        arrangement="parallel",
        datas=plan.devices,
        models=plan.devices,
        data_indices=numbers,
        model_indices=numbers,
    )


@dataclass(frozen=True)
class _Way:
    """Makes supplies, with codes that are live, kept as they come, or there before."""

    stage: Stage
    config: Config
    cache: Path
    clips: Clips
    say: Say

    def steps(self, by_epochs: int) -> int:
        """Of the whole run."""
        steps, most = self.stage.steps or by_epochs, self.config.training.max_steps
        return min(steps, most or steps)

    def sounds(self, plan: DevicePlan) -> tuple[Sounds, ...]:
        """Of each part that has clips."""
        parts = [part for part in self.clips.parts if len(part.rows)]
        if len(parts) < 2:
            self.say("no clip is held out: nothing judges (data.validation_share, --val-data)")
        count = len(plan.models)
        together = not plan.apart and count > 1
        rows, worker = (1, self.lane(0, count)) if together else (count, self.clips.worker)
        opened = [
            open_part(part, self.clips.tokenizer, self.config, rows, self.say, worker)
            for part in parts
        ]
        sounds = tuple([ClipSound(reader, self.config.data)] for reader in opened)
        return tuple(self.shared(each, plan) for each in sounds) if together else sounds

    def shared(self, sounds: Sounds, plan: DevicePlan) -> Sounds:
        """The same clips dealt out to the model devices: one source, a plan for each."""
        reader, count = sounds[0].reader, len(plan.models)
        data, seed = self.config.data, self.config.training.seed
        samples, ladder = reader.source.samples, reader.plan.ladder
        plans = [
            make_plan(samples, data, seed, worker=self.lane(index, count), ladder=ladder)
            for index in range(count)
        ]
        return [ClipSound(reader._replace(plan=each), data) for each in plans]

    def lane(self, place: int, count: int) -> Worker:
        """One of this machine's devices, of all that prepare for themselves."""
        machine = self.clips.worker
        return Worker(machine.index * count + place, machine.count * count)

    @contextlib.contextmanager
    def live(
        self, plan: DevicePlan, sounds: tuple[Sounds, ...], view: View, numbers: range
    ) -> Iterator[Supplies]:
        """Everything is made as it is needed."""
        del view, numbers
        yield self._supplies(plan, sounds)

    @contextlib.contextmanager
    def kept(
        self, plan: DevicePlan, sounds: tuple[Sounds, ...], view: View, numbers: range
    ) -> Iterator[Supplies]:
        """The codes of what is learned from are kept as they are made."""
        del numbers
        cache = self._open(view)
        with cache.writing():
            train, judging = self._supplies(plan, sounds)
            train.keep = Shelf(cache, self.clips.parts[0], sounds[0][0]).keep
            yield train, judging

    @contextlib.contextmanager
    def told(
        self,
        plan: DevicePlan,
        sounds: tuple[Sounds, ...],
        view: View,
        numbers: range,
        *,
        encoders: Sequence[str] = (),
        alike: tuple[Sounds, ...] = (),
    ) -> Iterator[Supplies]:
        """The codes come from the cache; those that it lacks are made first, by `encoders`.

        They are made in batches like those of `alike`, so that they are the codes that these
        would have had live.
        """
        cache = self._open(view)
        pairs = zip(self.clips.parts, alike or sounds, strict=False)
        shelves = [Shelf(cache, part, each[0]) for part, each in pairs]
        readers = [[sound.reader for sound in each] for each in sounds]
        self._fill(cache, shelves, readers, (encoders or plan.models, numbers), view)
        with_codes = tuple(
            [ClipSound(reader, self.config.data) for reader in shelf.told(those)]
            for shelf, those in zip(shelves, readers, strict=True)
        )
        yield self._supplies(plan, with_codes)

    def _fill(
        self,
        cache: CodeCache,
        shelves: Sequence[Shelf],
        readers: Sequence[Sequence[Reader]],
        how: tuple[Sequence[str], range],
        view: View,
    ) -> None:
        assert isinstance(self.stage, Encoding)  # noqa: S101
        devices, numbers = how
        missing = []
        for shelf, those, wanted in zip(shelves, readers, (numbers, range(0)), strict=False):
            lacking_KC = shelf.lacking([reader.plan for reader in those], wanted)
            if lacking_KC.any():
                missing.append((shelf, shelf.batches(lacking_KC)))
        if not missing:
            view.say(f"cache: all codes are in {cache.folder}")
            return
        batches = sum(reader.plan.batches_per_epoch for _, reader in missing)
        programs = [Program(self.stage.codes(d), d, name="encode") for d in devices]
        with cache.writing(), view.phase("encoding", batches) as advance, explicit_moves():
            for shelf, reader in missing:
                shelf.fill(reader, programs, advance)
        view.say(f"cache: {len(cache)} codings of clips in {cache.folder}")
        # The codec's memory is wanted for learning; its programs hold one another in a circle.
        self.stage.let_go()
        del programs
        gc.collect()

    def _open(self, view: View) -> CodeCache:
        assert isinstance(self.stage, Encoding)  # noqa: S101
        return open_cache(cache_folder(self.cache, self.stage.codes_maker, view.say), view.say)

    def _supplies(self, plan: DevicePlan, sounds: tuple[Sounds, ...]) -> Supplies:
        depth = self.config.pipeline.depth
        made = [
            Supply(each, self.stage, plan, depth, judging=judging)
            for each, judging in zip(sounds, (False, True), strict=False)
        ]
        return made[0], made[1] if len(made) > 1 else None
