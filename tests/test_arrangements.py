"""Arrangements that keep codes: the weights are those without, and a run goes on bit-same."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf
from test_train import as_killed_after, checkpoint, losses
from training import config_for, corpus, trained

from myxtts.cache.store import VALUES
from myxtts.codec import Codec
from myxtts.config import Config
from myxtts.devices import DevicePlan
from myxtts.errors import UserError
from myxtts.telemetry.record import FILE, read_events
from myxtts.weights import save_weights

STEPS = 8
SETTINGS = {
    "model.gpt.layers": 1,
    "training.stage": "gpt",
    "stages.gpt.steps": STEPS,
    "training.save_every": 2,
    "training.keep": 9,
    "training.validate_every": 4,
    "data.batch_size": 8,
}
SPLIT = DevicePlan("split", ("/CPU:0",), ("/CPU:1",))
CACHED = DevicePlan("cached", ("/CPU:1",), ("/CPU:1",))
HYBRID = DevicePlan("hybrid", ("/CPU:0",), ("/CPU:1",))
# Of 27 clips in batches of 8 rows: four steps are the first epoch on one model device.
FIRST_EPOCH = 4


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    root = tmp_path_factory.mktemp("arrangements")
    return config_for(corpus(root / "clips"), **SETTINGS)


@pytest.fixture(scope="module")
def short(config: Config) -> Config:
    """All clips in one length: half of the compiling."""
    return config.model_copy(update={"data": config.data.model_copy(update={"buckets": 1})})


@pytest.fixture(scope="module")
def begun(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Folders of runs that have a codec, of random weights, and have yet to train a GPT."""
    with tf.device("/CPU:0"):
        codec = Codec(config.model.codec)

    def new() -> Path:
        run = tmp_path_factory.mktemp("run") / "run"
        (run / "model").mkdir(parents=True)
        save_weights(codec, run / "model" / "codec.safetensors")
        return run

    return new


@pytest.fixture(scope="module")
def split(config: Config, begun: Callable[[], Path]) -> Path:
    """Everything is made as it is needed."""
    return trained(config, SPLIT, begun())


@pytest.fixture(scope="module")
def said() -> dict[str, list[str]]:
    return {"cached": [], "hybrid": []}


@pytest.fixture(scope="module")
def cached(config: Config, begun: Callable[[], Path], said: dict[str, list[str]]) -> Path:
    return trained(config, CACHED, begun(), said["cached"])


@pytest.fixture(scope="module")
def hybrid(short: Config, begun: Callable[[], Path], said: dict[str, list[str]]) -> Path:
    return trained(short, HYBRID, begun(), said["hybrid"])


def programs(run: Path) -> list[set[str]]:
    """For each start of the GPT's stage, the devices on which something was extracted."""
    files = sorted((run / "gpt").glob(f"*/{FILE}"))
    return [
        {e["device"] for e in read_events(f) if e["kind"] == "span" and e["name"] == "extract"}
        for f in files
    ]


def test_with_kept_codes_every_weight_is_the_one_without(cached: Path, split: Path) -> None:
    assert checkpoint(cached, "gpt") == checkpoint(split, "gpt")
    assert losses(cached, "gpt") == losses(split, "gpt")


def test_codes_are_made_before_the_first_step_and_then_no_more(
    cached: Path, said: dict[str, list[str]]
) -> None:
    lines = said["cached"]
    assert lines.index("encoding: 0 of 5") < lines.index("compiling: 0 of 2")
    assert (cached / "cache").is_dir()


def test_a_cached_run_goes_on_bit_same_even_with_its_cache_damaged(
    config: Config, cached: Path, tmp_path: Path
) -> None:
    broken, lines = as_killed_after(4, cached, "gpt", tmp_path), list[str]()
    (folder,) = (broken / "cache").iterdir()
    damaged = bytearray((folder / VALUES).read_bytes())
    damaged[0] ^= 1
    (folder / VALUES).write_bytes(damaged)
    trained(config, CACHED, broken, lines)
    assert any("is damaged: the codes of" in line for line in lines)
    assert checkpoint(broken, "gpt") == checkpoint(cached, "gpt")


def test_hybrid_learns_its_first_epoch_as_split_and_then_on_all_devices(
    hybrid: Path, said: dict[str, list[str]]
) -> None:
    assert sorted(losses(hybrid, "gpt")) == list(range(1, STEPS + 1))
    assert programs(hybrid) == [{"/CPU:0"}, {"/CPU:0", "/CPU:1"}]
    assert "hybrid: 4 steps as split, then 4 on all 2 devices" in said["hybrid"]


@pytest.mark.campaign
@pytest.mark.parametrize("step", [FIRST_EPOCH - 2, FIRST_EPOCH + 2])
def test_hybrid_goes_on_bit_same_from_either_leg(
    step: int, short: Config, hybrid: Path, tmp_path: Path
) -> None:
    broken = as_killed_after(step, hybrid, "gpt", tmp_path)
    if step < FIRST_EPOCH:  # What the first leg kept is made again when the second begins.
        shutil.rmtree(broken / "cache")
    trained(short, HYBRID, broken)
    assert checkpoint(broken, "gpt") == checkpoint(hybrid, "gpt")
    after = {s: values for s, values in losses(hybrid, "gpt").items() if s > step}
    assert losses(broken, "gpt") == after


def test_clips_that_change_at_every_epoch_are_not_kept(
    config: Config, begun: Callable[[], Path]
) -> None:
    changing = config_for(config.data.train or Path(), **SETTINGS, **{"data.augment.gain": 0.5})
    for plan in (CACHED, HYBRID):
        with pytest.raises(UserError, match=r"data\.augment\.gain=0\.5 changes the clips"):
            trained(changing, plan, begun())
