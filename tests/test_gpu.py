"""What only real cards can show; each runs in a process of its own, with the cards it names."""

import json
import subprocess
import sys
from typing import Any

import pytest

from myxtts.devices import list_gpus

CARDS = list_gpus()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(len(CARDS) < 2, reason="needs two GPUs"),
]

OPEN = """
import json
from myxtts.config import DevicesConfig
from myxtts.devices import *
plan = plan_devices(DevicesConfig(**{asked!r}), list_gpus())
open_devices(plan)
proofs = prove_devices(plan)
import tensorflow as tf
{body}
print(json.dumps(answer))
"""


def on_gpus(body: str, **asked: object) -> Any:
    program = OPEN.format(asked=asked, body=body)
    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize(("data", "model"), [(0, 1), (1, 0)])
def test_each_role_has_the_card_that_was_asked_for(data: int, model: int) -> None:
    seen = on_gpus("answer = [proof.uuid for proof in proofs]", data_gpu=data, model_gpu=(model,))
    assert seen == [CARDS[data].uuid, CARDS[model].uuid]


def test_a_cap_holds() -> None:
    body = """
try:
    with tf.device(plan.model):
        held = tf.zeros([600 * 2**20 // 4])
    answer = "given"
except tf.errors.ResourceExhaustedError:
    answer = "refused"
"""
    caps = {"memory_isolation": True, "data_gpu_memory": 512, "model_gpu_memory": 512}
    assert on_gpus(body, data_gpu=0, model_gpu=(1,), **caps) == "refused"


def test_both_halves_of_one_card_count_their_own_bytes() -> None:
    body = """
with tf.device(plan.model):
    held = tf.zeros([2**20])
answer = [allocator_bytes(device)[0] for device in plan.devices]
"""
    caps = {"memory_isolation": True, "data_gpu_memory": 512, "model_gpu_memory": 512}
    data, model = on_gpus(body, data_gpu=0, model_gpu=(0,), **caps)
    assert model >= 4 * 2**20 > data


def test_a_foreign_tensor_is_refused_and_a_foreign_int32_is_not() -> None:
    body = """
with tf.device(plan.data):
    foreign, lengths = tf.ones([4]), tf.ones([4], tf.int32)
with explicit_moves(), tf.device(plan.model):
    lengths + 1
    try:
        answer = str(foreign + 1)
    except tf.errors.InvalidArgumentError:
        answer = "refused"
"""
    assert on_gpus(body, data_gpu=0, model_gpu=(1,)) == "refused"


def test_batches_are_made_on_one_card_while_the_other_learns() -> None:
    body = """
import pathlib, tempfile
from myxtts.clips import ClipSound
from myxtts.config import load_config
from myxtts.noise import open_noise
from myxtts.rehearsal import count_overlaps, rehearse
with tempfile.TemporaryDirectory() as folder:
    config = load_config(size="small", flags={"telemetry.runs": folder})
    noise = ClipSound(open_noise(config, 4.0, 1), config.data)
    run = rehearse(config, plan, 30, noise, lambda line: None)
    answer = count_overlaps(run.folder)
"""
    assert on_gpus(body, data_gpu=0, model_gpu=(1,)) > 15
