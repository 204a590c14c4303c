"""What TensorBoard is told of one stage: the log's numbers, the judging's, and mels to look at.

Legend: B batch, T frames, M mels.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from myxtts.batch import Tensors
from myxtts.devices import DevicePlan
from myxtts.learner import Learner, Pictured, Pictures
from myxtts.pipeline import Program, move
from myxtts.reader.feed import NAMELESS
from myxtts.run import Run
from myxtts.schedule import Schedule
from myxtts.stages import Developing, Stage
from myxtts.telemetry.record import Recorder
from myxtts.telemetry.verdict import Verdict
from myxtts.train.loop import Course
from myxtts.train.supply import Supply
from myxtts.view.board import Board, open_board

FOLDER = "board"
CLIPS = 2
"""Looked at each time, always the same."""
TAGS = {
    "loss": "loss/whole",
    "loss_text": "loss/text",
    "loss_audio": "loss/audio",
    "reconstruction": "loss/reconstruction",
    "commitment": "loss/commitment",
    "codes_used": "codes/used",
    "codes_in_batch": "codes/in_batch",
    "perplexity": "codes/perplexity",
}
"""Where a scalar stands on the board; any other stands there by its own name."""


class Camera:
    """Takes the same clips each time; until then nothing of it is compiled or held."""

    def __init__(
        self, stage: Stage, student: Pictured, supply: Supply, places: tuple[str, str]
    ) -> None:
        self._stage = stage
        self._student = student
        self._supply = supply
        self._data, self._model = places
        self._programs: list[Program] = []

    def __call__(self) -> Iterator[tuple[str, Pictures]]:
        """Each clip's name and its mels, on the host, the padding cut off."""
        self._programs = self._programs or self._made()
        with self._supply.open(range(1), Recorder()) as feed:
            hand = next(feed)[0]
        shown = hand.tensors
        for program in self._programs:
            shown = program(move(shown, program.device))
        pictures = Pictures(*(tensor.numpy() for tensor in shown))
        for clip, real, made, frames in zip(hand.clips, *pictures, strict=False):
            if clip != NAMELESS:
                yield clip, Pictures(real[:frames], made[:frames], frames)

    def _made(self) -> list[Program]:
        """What the student makes, on its device; and mels of that, where they are codes."""
        taken = [Program(_of_few(self._student), self._model, name="pictures")]
        if isinstance(self._stage, Developing):
            taken.append(Program(self._stage.mels(self._data), self._data, name="mels of pictures"))
        return taken


def camera_of(stage: Stage, learner: Learner, supply: Supply, plan: DevicePlan) -> Camera | None:
    """None for a stage that has nothing to look at."""
    first = learner.copies[0]
    if not isinstance(first.student, Pictured):
        return None
    return Camera(stage, first.student, supply, (plan.data, first.device))


class Showing:
    """Writes to the board what the loop knows."""

    def __init__(self, board: Board, schedule: Schedule, camera: Camera | None) -> None:
        self._board = board
        self._schedule = schedule
        self._camera = camera

    def log(self, run: Run, verdict: Verdict | None) -> None:
        """The newest finished step's numbers, and the verdict on those since the last log."""
        if verdict is None:
            return
        step = run.times[-1].step
        self._board.scalars(step, {**tagged(run.values), "lr": self._schedule.rate(step)})
        self._board.verdict(step, verdict, run.data_busy)

    def validation(self, step: int, found: Mapping[str, float]) -> None:
        """What the clips that judge say."""
        self._board.validation(step, found)

    def pictures(self, step: int) -> None:
        """The real mels above the made ones."""
        if self._camera:
            for clip, mels in self._camera():
                # Sound of these mels would be written here too: `Board.audio`.
                self._board.mels(step, f"mel/{clip}", mels.real, mels.made)


@contextlib.contextmanager
def open_showing(folder: Path, course: Course, camera: Camera | None) -> Iterator[Showing]:
    """The board of a stage's folder; a stage that goes on takes back the steps it takes again."""
    place = folder / FOLDER
    place.mkdir(exist_ok=True)
    with open_board(place, course.first) as board:
        yield Showing(board, course.schedule, camera)


def tagged(values: Mapping[str, float]) -> dict[str, float]:
    """The scalars by their places on the board."""
    return {TAGS.get(name, name): value for name, value in values.items()}


def _of_few(student: Pictured) -> Callable[[Tensors], Pictures]:
    return lambda features: student.pictures({n: t[:CLIPS] for n, t in features.items()})
