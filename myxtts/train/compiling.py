"""Every shape is compiled before the first step, and the faster compiler is found by trying."""

import time

from myxtts.config import TrainingConfig
from myxtts.learner import Learner
from myxtts.pipeline import Hands, finish
from myxtts.train.supply import Supply
from myxtts.view.live import View

ROUNDS = 3
"""Timed calls of each compiler, after the one that compiles."""


def compile_shapes(supply: Supply, learner: Learner, training: TrainingConfig, view: View) -> None:
    """Traces and compiles what every bucket needs; no weight moves."""
    with view.phase("compiling", supply.shapes) as advance:
        for place, hands in enumerate(supply.one_of_each_shape()):
            if place == 0 and training.compile == "auto":
                _choose(learner, hands, view)
            learner.try_out(hands)
            advance()
    for program in [*supply.programs, *learner.finders]:
        program.close()


def _choose(learner: Learner, hands: Hands, view: View) -> None:
    """Times graph mode and XLA on one batch; a tie goes to graph mode, which compiles sooner."""
    seconds = {}
    for jit in (False, True):
        learner.use(jit=jit)
        learner.try_out(hands)
        seconds[jit] = min(_timed(learner, hands) for _ in range(ROUNDS))
    learner.use(jit=seconds[True] < seconds[False])
    graph, xla = (1000 * seconds[jit] for jit in (False, True))
    taken = "XLA" if learner.jit else "graph mode"
    view.say(f"compile: auto took {taken} (graph {graph:.0f} ms, XLA {xla:.0f} ms a batch)")


def _timed(learner: Learner, hands: Hands) -> float:
    begun = time.perf_counter()
    finish(learner.try_out(hands))
    return time.perf_counter() - begun
