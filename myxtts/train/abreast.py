"""Several machines in step: one folder, the same settings, clips and weights, one that writes.

Worker 0, the chief, writes the run's folder; the others read it there and keep books of their own.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from myxtts.checkpoint import State, Stored, changes, find
from myxtts.checkpoint.saver import Saver
from myxtts.config import Config
from myxtts.devices import MB, Say
from myxtts.errors import UserError
from myxtts.learner import Learner
from myxtts.pipeline import Team
from myxtts.plan import Plan
from myxtts.run import Run
from myxtts.telemetry.verdict import Verdict
from myxtts.train.memory import tf_value
from myxtts.train.resume import GoingOn
from myxtts.train.showing import Showing

OWN = (
    *("devices.", "pipeline.", "telemetry.", "training.log_every", "training.keep"),
    *("data.num_workers", "data.prefetch", "data.buffer_size", "data.cache"),
)
"""What each machine's settings may have of its own, by how the names begin."""
FOLDERS = ("data.train", "data.val", "data.replay", "text.vocabulary", "training.start_from")
"""These too: what lies there is compared itself."""
APPEAR_SECONDS = 60.0
"""How long a shared disk may take to show what another machine has made."""
SHARED = "the runs' folder (telemetry.runs) must lie on a disk that all machines share"


class Unsaved(Saver):
    """Saves nothing: the chief does."""

    def __init__(self) -> None:
        """Without a folder and a thread."""

    def save(self, state: State) -> None:
        """Nothing."""

    def settle(self) -> None:
        """Nothing is under way."""

    def __exit__(self, *_: object) -> None:
        """Nothing was opened."""


class Unseen(Showing):
    """Shows nothing: the chief's board does."""

    def __init__(self) -> None:
        """Without a board."""

    def log(self, run: Run, verdict: Verdict | None) -> None:
        """Nothing."""

    def validation(self, step: int, found: Mapping[str, float]) -> None:
        """Nothing."""

    def pictures(self, step: int) -> None:
        """Nothing."""


def check_settings(config: Config, team: Team) -> None:
    """Raises, on every machine, where one has other settings than the chief."""
    if team.alone:
        return
    own = json.loads(config.model_dump_json())
    refused = [
        f"{change.key} is {change.present} here and {change.saved} there"
        for change in changes(json.loads(team.told(json.dumps(own))), own)
        if not _may_differ(change.key)
    ]
    if team.any(flag=bool(refused)):
        told = "; ".join(refused) or "see the other workers' output"
        raise UserError(
            f"the workers' settings differ from the chief's: {told}",
            "start every worker with the same --config and flags, but for devices and folders",
        )


def agreed_folder(
    going_on: GoingOn | None, begin: Callable[[], Path], runs: Path, team: Team
) -> Path:
    """The run's folder: the chief's choice, by its name."""
    if team.chief:
        folder = going_on.folder if going_on else begin()
        team.told(folder.name)
        return folder
    name = team.told("")
    folder = going_on.folder if going_on else runs / name
    if folder.name != name:
        raise UserError(
            f"worker {team.index} goes on with {folder}, and the chief with {name}",
            f"name the run on every worker: --resume {name}; {SHARED}",
        )
    see(folder, team)
    return folder


def agreed_checkpoint(chiefs: Stored | None, folder: Path, team: Team, say: Say) -> Stored | None:
    """The checkpoint that the chief goes on from, looked for by nobody else."""
    name = team.told(chiefs.folder.name if chiefs else "")
    if team.chief or not name:
        return chiefs
    see(folder / name, team)
    return find(folder / name, say)


def crossing_line(learner: Learner, team: Team) -> str:
    """What a step costs the network."""
    sizes = [tf_value(weight).shape.num_elements() for weight in learner.state["weights"].values()]
    sent = 4 * sum(sizes) * 2 * (team.count - 1) / team.count / MB
    return f"worker {team.index} of {team.count}: each sends {sent:,.1f} MB of gradients a step"


def check_alike(learner: Learner, plan: Plan, team: Team) -> None:
    """Raises, on every machine, where one would learn from other clips or with other weights."""
    if team.alone:
        return
    for what, digest, advice in (
        ("clips", _digest_of(plan), "prepare the same clips with the same settings"),
        ("weights", learner.digest(), "name the same --start-from, or the same --resume"),
    ):
        if unlike := team.unlike(digest):
            named = ", ".join(map(str, unlike))
            raise UserError(
                f"worker {named} and the chief have different {what}",
                f"{advice} on every machine, with the same versions and as many model devices",
            )


def keep_alike(learner: Learner, step: int, run: Run, team: Team) -> None:
    """Weights that cards of different kinds have rounded apart become the chief's again."""
    if team.alone:
        return
    digest = learner.digest("weights", "state")
    unlike = team.unlike(digest)
    about = {"worker": team.index, "digest": digest.hex(), "unlike": unlike}
    run.recorder.write({"kind": "workers", "step": step, **about})
    if unlike:
        learner.follow_chief()
        named = ", ".join(map(str, unlike))
        run.view.say(f"⚠ step {step}: worker {named} had rounded otherwise: as the chief's again")


def books_of(folder: Path, team: Team) -> Path:
    """Where a worker's own telemetry goes."""
    return folder if team.chief else folder / f"worker-{team.index}"


def see(path: Path, team: Team) -> None:
    """Waits until what the chief has made is to be seen here too."""
    deadline = time.monotonic() + APPEAR_SECONDS
    while not path.exists():
        if time.monotonic() > deadline:
            raise UserError(f"worker {team.index} sees no {path}, which the chief has made", SHARED)
        time.sleep(0.2)


def _may_differ(key: str) -> bool:
    return key.startswith(OWN) or key in FOLDERS


def _digest_of(plan: Plan) -> bytes:
    """Of what decides on all batches of all workers."""
    whole = hashlib.blake2b(plan.samples.astype("<i8").tobytes(), digest_size=16)
    shapes = (plan.ladder.tops, plan.rows, plan.worker.count, plan.batches_per_epoch)
    whole.update(repr(shapes).encode())
    return whole.digest()
