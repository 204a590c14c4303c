"""The loss of clips that only judge: the same clips, slices and batches every time."""

from collections.abc import Mapping

from myxtts.config import TrainingConfig
from myxtts.learner import Learner
from myxtts.pipeline import ALONE_TEAM, Team
from myxtts.stages.stage import LOSS, SHARE
from myxtts.telemetry.record import Recorder
from myxtts.train.supply import Supply
from myxtts.view.live import View

CLIPS = "clips"
"""Among the sums: how many clips there were."""


class Judge:
    """Held-out clips in batches of their own."""

    def __init__(
        self,
        supply: Supply,
        learner: Learner,
        training: TrainingConfig,
        team: Team = ALONE_TEAM,
    ) -> None:
        self.supply = supply
        self._learner = learner
        self._team = team
        whole = supply.plan.batches_per_epoch
        self._numbers = range(min(whole, training.validation_batches))

    def __call__(self, view: View) -> dict[str, float]:
        """Each scalar, averaged over the clips of all machines."""
        sums = {CLIPS: 0.0}
        with (
            view.phase("validating", len(self._numbers)) as advance,
            self.supply.open(self._numbers, Recorder()) as feed,
        ):
            for hands in feed:
                weight, scalars = self._learner.judge(hands)
                count = float(weight.numpy())
                sums[CLIPS] += count
                for name, value in scalars.items():
                    sums[name] = sums.get(name, 0.0) + count * float(value.numpy())
                advance()
        sums = self._team.sums(sums)
        clips = max(sums.pop(CLIPS), 1.0)
        return by_language({name: value / clips for name, value in sums.items()})


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
