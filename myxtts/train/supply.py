"""The way from clips to the model devices: read, extract, transfer, run ahead."""

from collections.abc import Callable, Iterator, Sequence

from myxtts.batch import Batch
from myxtts.clips import ClipSound
from myxtts.devices import DevicePlan
from myxtts.features import Extract
from myxtts.pipeline import (
    Feed,
    Hands,
    Program,
    extract,
    feed_parallel,
    feed_split,
    in_turn,
    transfer,
)
from myxtts.plan import Plan
from myxtts.stages import Encoding, Stage
from myxtts.telemetry.record import Recorder

Keep = Callable[[Iterator[Batch]], Iterator[Batch]]


class Supply:
    """Batches of one set of clips for one stage; what it compiles serves every range of them.

    One sound is read for all model devices; or each of them has its own, and prepares it itself.
    Batches are asked for by the numbers of the clips' plan, and bear those of the run.
    """

    shift = 0
    """From the plan's numbers to the run's."""
    keep: Keep | None = None
    """What every lane's finished batches pass through; only where nothing is shifted."""

    def __init__(
        self,
        sounds: Sequence[ClipSound],
        stage: Stage,
        plan: DevicePlan,
        depth: int,
        *,
        judging: bool = False,
    ) -> None:
        self.sounds = sounds
        self._models = plan.models
        self._depth = depth
        name = "extract to judge" if judging else "extract"
        self.programs = [
            Program(_body(stage, sounds[0], device, judging=judging), device, name=name)
            for device in (plan.models if self._own else plan.datas)
        ]

    @property
    def plan(self) -> Plan:
        """Where batches stand; several sounds have alike plans."""
        return self.sounds[0].reader.plan

    @property
    def shapes(self) -> int:
        """In how many shapes batches come: each is compiled once."""
        return self.sounds[0].shapes

    @property
    def _own(self) -> bool:
        return len(self.sounds) > 1

    def seconds(self, number: int) -> float:
        """The sound in a batch of the run, on all devices."""
        return sum(sound.seconds(number - self.shift) for sound in self.sounds)

    def open(self, numbers: range, recorder: Recorder) -> Feed:
        """The batches with these numbers, made ahead of the loop that takes them."""
        if self._own:
            whole = zip(self.sounds, self.programs, strict=True)
            lanes = [self._lane(sound, program, numbers, recorder) for sound, program in whole]
            return feed_parallel(lanes, self._depth, recorder)
        turns = len(self.programs)
        lanes = [
            self._lane(self.sounds[0], program, numbers[place::turns], recorder)
            for place, program in enumerate(self.programs)
        ]
        return feed_split(lanes, self._models, self._depth, recorder)

    def one_of_each_shape(self) -> Iterator[Hands]:
        """The first batch of every bucket, through every device's programs, nothing made ahead."""
        silent = Recorder()
        if self._own:
            whole = zip(self.sounds, self.programs, strict=True)
            yield from zip(*(self._firsts(s, p, silent) for s, p in whole), strict=True)
            return
        lanes = [self._firsts(self.sounds[0], program, silent) for program in self.programs]
        made = transfer(in_turn(lanes), self._models, silent)
        for place, hands in enumerate(made):
            if place % len(lanes) == 0:
                yield hands

    def _lane(
        self, sound: ClipSound, program: Program, numbers: range, recorder: Recorder
    ) -> Iterator[Batch]:
        raw = sound.read(program.device, numbers, recorder)
        if self.shift:
            raw = (batch._replace(number=batch.number + self.shift) for batch in raw)
        made = extract(raw, program, recorder)
        return self.keep(made) if self.keep else made

    def _firsts(self, sound: ClipSound, program: Program, recorder: Recorder) -> Iterator[Batch]:
        buckets = self.plan.table(0, self.plan.batches_per_epoch).buckets.tolist()
        for bucket in sorted(set(buckets)):
            number = buckets.index(bucket)
            yield from self._lane(sound, program, range(number, number + 1), recorder)


def _body(stage: Stage, sound: ClipSound, device: str, *, judging: bool) -> Extract:
    """All features, or those beside the codes that come with the clips."""
    if sound.reader.codes is not None and isinstance(stage, Encoding):
        return stage.beside_codes(device, judging=judging)
    return stage.features(device, judging=judging)
