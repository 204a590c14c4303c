"""The loss of clips that only judge: the same clips, slices and batches every time."""

from collections.abc import Mapping

from myxtts.config import TrainingConfig
from myxtts.learner import Learner
from myxtts.stages.stage import LOSS, SHARE
from myxtts.telemetry.record import Recorder
from myxtts.train.supply import Supply


class Judge:
    """Held-out clips in batches of their own."""

    def __init__(self, supply: Supply, learner: Learner, training: TrainingConfig) -> None:
        self._supply = supply
        self._learner = learner
        whole = supply.plan.batches_per_epoch
        self._numbers = range(min(whole, training.validation_batches))

    def __call__(self, _recorder: Recorder) -> dict[str, float]:
        """Each scalar, averaged over the clips."""
        sums: dict[str, float] = {}
        clips = 0.0
        with self._supply.open(self._numbers, Recorder()) as feed:
            for hands in feed:
                weight, scalars = self._learner.judge(hands)
                count = float(weight.numpy())
                clips += count
                for name, value in scalars.items():
                    sums[name] = sums.get(name, 0.0) + count * float(value.numpy())
        return by_language({name: value / max(clips, 1.0) for name, value in sums.items()})


def by_language(means: Mapping[str, float]) -> dict[str, float]:
    """With each language's loss as the mean over its own clips; none has a share of nothing."""
    found = {name: value for name, value in means.items() if not name.startswith(SHARE)}
    for name, share in means.items():
        if name.startswith(SHARE):
            loss = LOSS + name.removeprefix(SHARE)
            if share:
                found[loss] /= share
            else:
                del found[loss]
    return found
