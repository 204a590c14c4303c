"""The way from clips to the model devices: read, extract, transfer, run ahead."""

import contextlib
from collections.abc import Iterator

from myxtts.batch import Batch
from myxtts.clips import ClipSound
from myxtts.devices import DevicePlan
from myxtts.learner import Hands
from myxtts.pipeline import Feed, Program, extract, transfer
from myxtts.stages import Stage
from myxtts.telemetry.record import Recorder


class Supply:
    """Batches of one set of clips for one stage; what it compiles serves every range of them."""

    def __init__(
        self, sound: ClipSound, stage: Stage, plan: DevicePlan, depth: int, *, judging: bool = False
    ) -> None:
        self.sound = sound
        self._plan = plan
        self._depth = depth
        name = "extract to judge" if judging else "extract"
        self.program = Program(stage.features(plan.data, judging=judging), plan.data, name=name)

    def open(self, numbers: range, recorder: Recorder) -> Feed:
        """The batches with these numbers, made ahead of the loop that takes them."""
        raw = self.sound.read(self._plan.data, numbers, recorder)
        made = extract(raw, self.program, recorder)
        return Feed(made, self._plan.models, self._depth, recorder)

    @contextlib.contextmanager
    def one_of_each_shape(self) -> Iterator[Iterator[Hands]]:
        """The first batch of every bucket, on the model devices, nothing made ahead."""
        silent = Recorder()
        raw = self._firsts(silent)
        yield transfer(extract(raw, self.program, silent), self._plan.models, silent)

    def _firsts(self, recorder: Recorder) -> Iterator[Batch]:
        plan = self.sound.reader.plan
        buckets = plan.table(0, plan.batches_per_epoch).buckets.tolist()
        for bucket in sorted(set(buckets)):
            number = buckets.index(bucket)
            yield from self.sound.read(self._plan.data, range(number, number + 1), recorder)
