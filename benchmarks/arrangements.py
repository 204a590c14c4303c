"""How much sound a second each arrangement learns from, and the form of training it replaces.

    .venv/bin/python benchmarks/arrangements.py PREPARED_FOLDER

All arms learn from the same clips with the same network; the rounds are interleaved. Two CPU
devices stand for two GPUs, each operation held to one core (--threads), and the devices share one
memory: what the arms cost beside one another is real, what a second GPU would bring is not.
`sequential` has the same programs as `single`, one after the other, with nothing made ahead.
`eager` is the form that this system replaces: mels by NumPy for each clip in `tf.numpy_function`,
the step run operation by operation.
Figures are seconds of sound a second: median (least to greatest).
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from eager import EagerLoop
from figures import OtherWork, hand_out, missed, parser, spread, told

from myxtts.clips import find_parts
from myxtts.codec import Codec
from myxtts.config import Config, DevicesConfig, load_config
from myxtts.devices import explicit_moves, open_devices, plan_devices
from myxtts.learner import At, Learner, Settings
from myxtts.pipeline import Hands, extract, transfer
from myxtts.stages import DvaeStage, GptStage, Materials, Stage
from myxtts.telemetry.record import Recorder
from myxtts.text import Tokenizer, train_vocabulary
from myxtts.train.legs import Clips, Leg, legs_of
from myxtts.train.start import sized
from myxtts.train.supply import Supply
from myxtts.view.live import Lines
from myxtts.weights import save_weights

ARRANGEMENTS = ("single", "split", "cached", "parallel", "hybrid")
OF_DVAE = ("single", "split", "parallel")
"""Nothing of the codec's stage can be kept."""
EAGER = "eager with numpy_function"
TARGETS = {f"gpt, best arrangement over {EAGER}": 5.0}
WARM_UP = 6
"""Steps before each timing: the rings are full by then, and no fuller at its end."""
VOCABULARY = 500
SILENT = Recorder()

Take = Callable[[int], float]
"""Learns so many steps from now on; the seconds of sound in them."""


class Bench(NamedTuple):
    """What all arms share."""

    config: Config
    clips: Clips
    folder: Path
    """For the codec's weights and the codes."""
    steps: int
    """That each arm takes in all."""


class Arm:
    """A learner and what feeds it."""

    def __init__(self, bench: Bench, stage: Stage, leg: Leg, stack: ExitStack) -> None:
        batches = range(leg.shift, leg.shift + bench.steps)
        view = Lines(_nothing, time.perf_counter)
        supplies = leg.supplies(view, leg.own(batches))
        self.supply: Supply = stack.enter_context(supplies)[0]
        self.models, self._stage = leg.plan.models, stage
        self.learner = Learner(stage.student, self.models, Settings(stage.habits, 0, jit=False))
        with explicit_moves():
            for hands in self.supply.one_of_each_shape():
                self.learner([hands], _AT)
        self._next = 0

    def __call__(self, steps: int) -> tuple[float, float]:
        """Seconds of sound, and seconds."""
        numbers = range(self._next, self._next + WARM_UP + steps)
        self._next = numbers.stop
        with explicit_moves(), self._open(numbers) as batches:
            for hands in islice(batches, WARM_UP):
                self.learner([hands], _AT)
            begun, sound = time.perf_counter(), 0.0
            for hands in batches:
                self._read(self.learner([hands], _AT))
                sound += self.supply.seconds(hands[0].number)
            return sound, time.perf_counter() - begun

    def _open(self, numbers: range) -> Any:
        return self.supply.open(numbers, SILENT)

    def _read(self, results: dict[str, tf.Tensor]) -> None:
        """On a CPU device a step is over when it returns."""


class Sequential(Arm):
    """Reads, extracts, moves and learns in turn, and looks at each loss."""

    def __init__(self, bench: Bench, stage: Stage, leg: Leg, stack: ExitStack) -> None:
        super().__init__(bench, stage, leg, stack)
        self._stack = stack

    def _open(self, numbers: range) -> Any:
        return ExitStackOf(self._batches(numbers))

    def _batches(self, numbers: range) -> Iterator[Hands]:
        (program,), sound = self.supply.programs, self.supply.sounds[0]
        raw = sound.read(program.device, numbers, SILENT)
        return transfer(extract(raw, program, SILENT), self.models, SILENT)

    def _read(self, results: dict[str, tf.Tensor]) -> None:
        float(results["loss"].numpy())


class ExitStackOf:
    """An iterator as what `with` wants."""

    def __init__(self, batches: Iterator[Hands]) -> None:
        self._batches = batches

    def __enter__(self) -> Iterator[Hands]:
        return self._batches

    def __exit__(self, *_error: object) -> None:
        """Nothing runs by itself."""


def open_arms(bench: Bench, name: str, wanted: Sequence[str], stack: ExitStack) -> dict[str, Any]:
    """Every arm, compiled; the hybrid one is two, before and after its devices join."""
    arms: dict[str, Any] = {}
    for arrangement in wanted:
        stage = stage_of(name, bench)
        legs = legs_in(arrangement, stage, bench)
        if arrangement == "single":
            arms["sequential"] = Sequential(bench, stage, legs[0], stack)
        if len(legs) > 1:
            arms["hybrid, first epoch"] = Arm(bench, stage, legs[0], stack)
            # One leg at a time writes into a cache, and here both are open.
            stage = stage_of(name, bench)
            arms["hybrid, later"] = Arm(bench, stage, legs_in("hybrid", stage, bench)[1], stack)
        else:
            arms[arrangement] = Arm(bench, stage, legs[0], stack)
    last = stage_of(name, bench)
    if isinstance(last, GptStage):
        arms[EAGER] = EagerLoop(bench.config, last, bench.clips, "/CPU:0")
    return arms


def legs_in(arrangement: str, stage: Stage, bench: Bench) -> list[Leg]:
    """With a folder of their own for what they keep."""
    asked = DevicesConfig(emulate=2, arrangement=arrangement)  # type: ignore[arg-type]
    run = Path(tempfile.mkdtemp(dir=bench.folder))
    return legs_of(stage, bench.config, plan_devices(asked, []), bench.clips, run, _nothing)


def stage_of(name: str, bench: Bench) -> Stage:
    """With a codec of random weights: how long codes take does not depend on them."""
    levels = np.ones(80, np.float32)
    file = bench.folder / "codec.safetensors"
    if name == "dvae":
        return DvaeStage(bench.config, Materials(levels), "float32")
    if not file.is_file():
        with tf.device("/CPU:0"):
            save_weights(Codec(bench.config.model.codec), file)
    return GptStage(bench.config, Materials(levels, weights={"codec": file}), "float32")


def measure(bench: Bench, name: str, options: Any) -> dict[str, Any]:
    """One stage's arms in turns; each round of an arm is one figure."""
    wanted = ARRANGEMENTS if name == "gpt" else OF_DVAE
    rates: dict[str, list[float]] = {}
    with ExitStack() as stack:
        arms = open_arms(bench, name, wanted, stack)
        other = OtherWork()
        for _ in range(options.rounds):
            for label, arm in arms.items():
                sound, seconds = arm(options.steps)
                rates.setdefault(label, []).append(sound / seconds)
    if "hybrid, later" in rates:
        rates["hybrid, 10 epochs"] = [
            10 / (1 / first + 9 / later)
            for first, later in zip(
                rates["hybrid, first epoch"], rates["hybrid, later"], strict=True
            )
        ]
    found: dict[str, Any] = {"other_cores": other.cores()}
    found["audio_per_second"] = {label: spread(each) for label, each in rates.items()}
    if EAGER in rates:
        found["over_eager"] = {
            label: spread(a / b for a, b in zip(each, rates[EAGER], strict=True))
            for label, each in rates.items()
        }
    return found


def show(figures: dict[str, Any]) -> None:
    """A table for each stage, and the target."""
    for name, found in figures.items():
        print(f"{name}: seconds of sound a second, {found['other_cores']:.1f} cores busy otherwise")
        times = found.get("over_eager", {})
        for label, rate in found["audio_per_second"].items():
            more = f"{told(times[label], '.2f')} × eager" if times else ""
            print(f"  {label:26}{told(rate, ',.1f'):>26}  {more}")
    if "gpt" in figures:
        over = {k: v[0] for k, v in figures["gpt"]["over_eager"].items() if k != EAGER}
        print(*missed(TARGETS, dict.fromkeys(TARGETS, max(over.values()))), sep="\n")


def main() -> None:
    """Opens two devices, then takes the arms one after the other."""
    asked = parser(__doc__)
    asked.add_argument("data", type=Path, help="a folder of prepared clips")
    asked.add_argument("--stages", default="dvae,gpt", help="of dvae and gpt")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--steps", type=int, default=20, help="timed in each round")
    asked.add_argument("--batch-size", type=int, default=8)
    asked.add_argument("--clips", type=int, default=400, help="about so many, of all")
    asked.add_argument("--buckets", type=int, default=3, help="each is compiled for every arm")
    asked.add_argument("--size", default="tiny")
    asked.add_argument("--threads", type=int, default=1, help="that one operation may take")
    options = asked.parse_args()
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(options.threads)  # Read when devices are opened.
    open_devices(plan_devices(DevicesConfig(emulate=2), []))
    with tempfile.TemporaryDirectory() as folder:
        bench = bench_of(options, Path(folder))
        figures = {name: measure(bench, name, options) for name in options.stages.split(",")}
    hand_out(figures, options, show)


def bench_of(options: Any, folder: Path) -> Bench:
    """The clips, the vocabulary of their texts, and the network that goes with it."""
    flags = {"model.size": options.size, "data.train": str(options.data)}
    flags |= {"data.batch_size": options.batch_size, "data.buckets": options.buckets}
    flags |= {"pipeline.model_start_delay": 0.0}
    flags |= {"training.epochs": 10, "training.compile": "graph"}
    config = load_config(flags=flags)
    parts = find_parts(config, None, _nothing)
    texts, languages = zip(*parts[0].texts(config.text), strict=True)
    tags = sorted(set(languages))
    vocabulary = train_vocabulary(texts, VOCABULARY, tags, at_most=True)
    config = config.model_copy(update={"model": sized(config.model, vocabulary)})
    # Every nth, so that the lengths and languages are those of all.
    some = parts[0].rows[:: max(1, len(parts[0].rows) // options.clips)]
    only = (replace(parts[0], rows=some), replace(parts[1], rows=some[:0]))
    steps = options.rounds * (options.steps + WARM_UP)
    return Bench(config, Clips(only, Tokenizer(vocabulary)), folder, steps)


def _nothing(_line: str) -> None:
    """The table says all there is to say."""


_AT = At(step=1, share=0.0, rate=1e-5)


if __name__ == "__main__":
    main()
