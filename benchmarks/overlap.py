"""How much of the shorter side hides behind the longer one, on two emulated devices.

    .venv/bin/python benchmarks/overlap.py

A made-up producer on the data device and a made-up step on the model device, each a chain
of matrix products held to one core, hand over batches of 8 MB through the real pipeline.
The limit is the period of the slower side while both run side by side and are not linked:
contention for memory and cores is in the limit, waiting for one another is not.
Legend: a period is seconds from one step's end to the next; efficiency = limit / linked period.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import tensorflow as tf
from figures import Work, hand_out, parser, spread, told, use_cores

from myxtts.batch import Batch
from myxtts.config import DevicesConfig
from myxtts.devices import DevicePlan, explicit_moves, open_devices, plan_devices
from myxtts.pipeline import Program, extract, feed_split, move, transfer
from myxtts.telemetry.alarms import variation
from myxtts.telemetry.record import Recorder

BATCH_SHAPE = (256, 8192)  # float32: 8 MB
WIDTH = 384
WARM_UP = 5


@dataclass(frozen=True)
class Load:
    """A producer and a step of known cost."""

    name: str
    producer_ms: float
    step_ms: float


BALANCED = Load("balanced", 60, 60)
LOADS = (BALANCED, Load("producer-heavy", 80, 40), Load("step-heavy", 40, 80))


@dataclass(frozen=True)
class Sides:
    """Both sides of one load, compiled and warm."""

    plan: DevicePlan
    produce: Program
    step: Program

    def features(self) -> Iterator[Batch]:
        """What the data device makes."""
        with tf.device(self.plan.data):
            clips = tf.zeros(BATCH_SHAPE)
        raw = (Batch(number, (), clips) for number in itertools.count())
        return extract(raw, self.produce, SILENT)

    def batches(self) -> Iterator[tuple[Batch, ...]]:
        """The same on the model device, with no thread between."""
        return transfer(self.features(), self.plan.models, SILENT)

    def learn(self, hands: tuple[Batch, ...]) -> None:
        """One step; on a CPU device it is over when the call returns."""
        self.step(hands[0].tensors)


SILENT = Recorder()


def chain(products: int) -> Callable[..., tf.Tensor]:
    """A program body of so many matrix products, one after the other, that keeps its input."""

    def body(batch: tf.Tensor, _number: tf.Tensor | None = None) -> tf.Tensor:
        # From the input, or the graph optimiser would compute the chain once and for all.
        state = tf.fill([WIDTH, WIDTH], batch[0, 0] + 1.0 / WIDTH)
        for _ in range(products):
            state = tf.matmul(state, state)
        return batch + state[0, 0]

    return body


def product_seconds(plan: DevicePlan) -> float:
    """What one product of the chain costs, both devices busy."""
    programs = [Program(chain(100), device, name="calibrate") for device in plan.devices]
    inputs = []
    for device in plan.devices:
        with tf.device(device):
            inputs.append(tf.zeros(BATCH_SHAPE))
    works: list[Work] = [partial(p, x) for p, x in zip(programs, inputs, strict=True)]
    return max(unlinked_periods(works, 1.0)) / 100


def build(plan: DevicePlan, load: Load, seconds_each: float) -> Sides:
    """Compiles both sides so that each takes about its named time."""
    products = [max(1, round(ms / 1000 / seconds_each)) for ms in (load.producer_ms, load.step_ms)]
    sides = Sides(
        plan,
        Program(chain(products[0]), plan.data, name="produce"),
        Program(chain(products[1]), plan.model, name="step"),
    )
    for batch in itertools.islice(sides.batches(), 3):
        sides.learn(batch)
    return sides


def unlinked_periods(works: list[Work], seconds: float) -> list[float]:
    """Each work's own period while all of them run side by side for so long."""
    begin = threading.Barrier(len(works) + 1)
    periods = [0.0] * len(works)

    def repeat(position: int, work: Work) -> None:
        with explicit_moves():
            work()
            begin.wait()
            start, count = time.perf_counter(), 0
            while time.perf_counter() - start < seconds:
                work()
                count += 1
            periods[position] = (time.perf_counter() - start) / count

    threads = [threading.Thread(target=repeat, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    begin.wait()
    for thread in threads:
        thread.join()
    return periods


def limit_period(sides: Sides, seconds: float) -> float:
    """The slower side's period with both running, not linked."""
    made = sides.batches()
    ready = next(made)
    return max(unlinked_periods([lambda: next(made), lambda: sides.learn(ready)], seconds))


def step_periods(batches: Iterator[tuple[Batch, ...]], sides: Sides, steps: int) -> list[float]:
    """Seconds from step's end to step's end, after a warm-up."""
    ends = []
    with explicit_moves():
        for batch in itertools.islice(batches, steps + WARM_UP):
            sides.learn(batch)
            ends.append(time.perf_counter())
    return [after - before for before, after in itertools.pairwise(ends[WARM_UP - 1 :])]


def linked_periods(sides: Sides, depth: int, steps: int) -> list[float]:
    """The pipeline as it trains: full ring first, then step after step."""
    with feed_split([sides.features()], sides.plan.models, depth, SILENT) as ahead:
        ahead.fill(10)
        return step_periods(ahead, sides, steps)


def handover_seconds(sides: Sides, batches: int, *, copied: bool) -> float:
    """Per batch: transfer, ring and both threads' work, when neither side computes anything.

    CPU devices share memory, so by itself a move copies nothing; `copied` adds a real copy.
    """
    (ready,) = next(sides.batches())
    clips = move(ready.tensors, sides.plan.data)
    raw: Iterator[Batch] = (Batch(number, (), clips) for number in itertools.count())
    if copied:
        raw = extract(
            raw, Program(lambda x, _number: x + 1.0, sides.plan.data, name="copy"), SILENT
        )
    with feed_split([raw], sides.plan.models, 3, SILENT) as ahead:
        for _ in itertools.islice(ahead, WARM_UP):
            pass
        start = time.perf_counter()
        for _ in itertools.islice(ahead, batches):
            pass
        return (time.perf_counter() - start) / batches


def one_round(every: dict[str, Sides], steps: int, seconds: float) -> dict[str, dict[str, float]]:
    """Every arrangement once, each next to its own limit."""
    figures = {}
    balanced = every[BALANCED.name]
    sequential = step_periods(balanced.batches(), balanced, steps // 2)
    cases = [(name, sides, 3) for name, sides in every.items()]
    for name, sides, depth in [("balanced, double buffer", balanced, 2), *cases]:
        limit = limit_period(sides, seconds)
        linked = linked_periods(sides, depth, steps)
        mean = sum(linked) / len(linked)
        figures[name] = {
            "limit_ms": limit * 1000,
            "linked_ms": mean * 1000,
            "efficiency": limit / mean,
            "variation": variation(np.array(linked)),
        }
    mean = sum(sequential) / len(sequential)
    figures["balanced, sequential"] = {
        "linked_ms": mean * 1000,
        "variation": variation(np.array(sequential)),
    }
    for name in ("balanced, double buffer", "balanced"):
        figures[name]["speed_up"] = mean * 1000 / figures[name]["linked_ms"]
    for name, copied in (("hand-over of 8 MB, shared", False), ("the same, copied", True)):
        figures[name] = {"linked_ms": handover_seconds(balanced, 500, copied=copied) * 1000}
    return figures


def summarise(rounds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, list[float]]]:
    """Median, least and greatest of every figure over the rounds."""
    return {
        name: {key: spread(each[name][key] for each in rounds) for key in row}
        for name, row in rounds[0].items()
    }


def show(summary: dict[str, dict[str, list[float]]]) -> None:
    """One line for each arrangement."""
    heads = f"{'period ms':>20}{'limit ms':>12}{'efficiency':>22}{'variation':>12}{'speed-up':>10}"
    print(" " * 28 + heads)
    for name, row in summary.items():
        period = row["linked_ms"]
        cells = f"{period[0]:8.2f} ({period[1]:.1f}–{period[2]:.1f})".rjust(20)
        cells += f"{row['limit_ms'][0]:.1f}".rjust(12) if "limit_ms" in row else " " * 12
        efficiency = row.get("efficiency")
        cells += told(efficiency, ".3f").rjust(22) if efficiency else " " * 22
        cells += f"{row['variation'][0]:.1%}".rjust(12) if "variation" in row else " " * 12
        cells += f"{row['speed_up'][0]:.2f} ×".rjust(10) if "speed_up" in row else ""
        print(f"{name:28}{cells}")


def main() -> None:
    """Measures in rounds, so that a neighbour's burst hits limit and linked run alike."""
    asked = parser(__doc__)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--steps", type=int, default=40)
    asked.add_argument("--seconds", type=float, default=2.0, help="length of each limit run")
    options = asked.parse_args()
    use_cores(2)  # One for each side, whatever the machine has.
    plan = plan_devices(DevicesConfig(emulate=2), [])
    open_devices(plan)
    each = product_seconds(plan)
    every = {load.name: build(plan, load, each) for load in LOADS}
    rounds = [one_round(every, options.steps, options.seconds) for _ in range(options.rounds)]
    summary = summarise(rounds)
    hand_out(summary, options, show)


if __name__ == "__main__":
    main()
