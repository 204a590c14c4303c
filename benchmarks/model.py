"""The network's parts beside the reference's, on the same cores in the same run.

    .venv/bin/python benchmarks/model.py
    .venv/bin/python benchmarks/model.py --reference REF/bin/python bench.py --rounds 5

The sections are those of the reference's script: a training step, decoding, the voice, the DVAE
and the vocoder, all with random weights. Without a reference only ours are measured.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

from arms import COMPILERS, SIZES, sections
from beside import Reference, measure, show
from figures import hand_out, missed, parser, use_cores

from myxtts.config import DevicesConfig
from myxtts.devices import open_devices, plan_devices

PARTS = ("train", "generate", "cond", "dvae", "hifigan")
PATIENCE = 60
"""Seconds that the reference waits at most for its machine to be quiet."""
QUIET = 0.2
"""Cores that other programs may use. torch's threads wait by spinning, so that the reference
falls behind far more than ours when it has to share its cores."""
TARGETS = {
    "train/tiny step": 2.0,
    "train/small step": 2.0,
    "generate/tiny greedy": 3.0,
    "generate/small greedy": 2.0,
    "generate/v2 greedy": 2.0,
    "dvae encode 1": 1.3,
    "dvae encode 8": 1.3,
    "hifigan sound folded": 1.5,
}
"""How many times as fast as the reference the best arm of each group has to be."""


def main() -> None:
    """Measures what is asked for, and says which targets are reached."""
    options = arguments()
    use_cores(options.cores)
    open_devices(plan_devices(DevicesConfig(emulate=1), []))
    chosen = (options.what, options.sizes, options.compilers)
    every = sections(*(each.split(",") for each in chosen))
    reference = reference_of(options)
    figures = measure(every, reference, options.rounds, options.repeats)
    hand_out(figures, options, partial(show_all, targets=reference is not None))


def arguments() -> Any:
    """What the user asks for."""
    asked = parser(__doc__)
    asked.add_argument("--what", default=",".join(PARTS), help="comma list of parts")
    asked.add_argument("--sizes", default="tiny,small", help=f"of the GPT: {','.join(SIZES)}")
    asked.add_argument("--compilers", default=",".join(COMPILERS), help="graph, XLA or both")
    asked.add_argument("--rounds", type=int, default=5, help="turns of ours and the reference")
    asked.add_argument("--repeats", type=int, default=3, help="timings of each in a round")
    asked.add_argument("--cores", type=int, default=None, help="cores for either; all by default")
    asked.add_argument(
        "--reference",
        nargs=2,
        type=Path,
        metavar=("PYTHON", "SCRIPT"),
        help="the reference's Python and its script of the same sections",
    )
    return asked.parse_args()


def reference_of(options: Any) -> Reference | None:
    """On as many threads as we have cores, with as many timings."""
    if options.reference is None:
        return None
    python, script = options.reference
    threads = len(os.sched_getaffinity(0))
    count = {"--threads": threads, "--repeats": options.repeats, "--max-seconds": PATIENCE}
    return Reference(python, script, [str(each) for pair in count.items() for each in pair])


def show_all(figures: dict[str, Any], *, targets: bool) -> None:
    """The table, and the targets of those sections that had the machine to themselves."""
    show(figures)
    quiet = {name: each for name, each in figures.items() if each["others"][2] <= QUIET}
    if not targets:
        return
    print(*missed(TARGETS, best(quiet)), sep="\n")
    for name in figures.keys() - quiet.keys():
        print(
            f"not judged: {name}, beside other programs on {figures[name]['others'][2]:.1f} cores"
        )


def best(figures: dict[str, Any]) -> dict[str, float]:
    """The best arm of each group; a group is all that its arms' names have before the comma."""
    found: dict[str, float] = {}
    for name, section in figures.items():
        for arm, row in section["arms"].items():
            group = f"{name} {arm.partition(',')[0]}"
            if "times_as_fast" in row:
                found[group] = max(found.get(group, 0.0), row["times_as_fast"][0])
    return found


if __name__ == "__main__":
    main()
