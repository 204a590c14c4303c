"""The DVAE against the reference's numbers, in a graph and under XLA.

tests/golden/dvae.safetensors holds the output of coqui-tts 0.28.0 (XTTS.md §7).
"""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import WITHIN, distance, give_golden_weights, golden

from myxtts.codec import Codec
from myxtts.config import CodecConfig
from myxtts.importer.names import codec_names
from myxtts.pipeline import Program

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

CONFIG = CodecConfig(codes=64, code_width=32, width=32)
GOLDEN = golden("dvae")
DEVICE = "/CPU:1"


def codec(precision: str = "float32") -> Codec:
    with tf.device(DEVICE):
        made = Codec(CONFIG, precision=precision)
        give_golden_weights(made, "weights_dvae", codec_names(CONFIG))
    return made


def on_device(name: str) -> Any:
    with tf.device(DEVICE):
        return tf.constant(time_first(name) if GOLDEN[name].ndim > 2 else GOLDEN[name])


def time_first(name: str) -> Any:
    return GOLDEN[name].transpose(0, 2, 1)


@pytest.mark.parametrize("jit", [False, True])
def test_codes_are_the_references_and_so_is_what_chose_them(jit: bool) -> None:
    made = codec()
    program = Program(lambda m: (made.encoder(m), made.encode(m)), DEVICE, jit=jit)
    vectors_BNC, codes_BN = program(on_device("in.mel"))
    np.testing.assert_array_equal(codes_BN, GOLDEN["out.codes"])
    assert distance(vectors_BNC, time_first("out.encoder_out")) < WITHIN
