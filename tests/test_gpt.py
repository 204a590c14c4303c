"""The GPT against the reference's numbers: losses, logits, gradients, voices (tests/golden)."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from golden_numbers import FOLDER, WITHIN, distance, give_golden_weights, golden

from myxtts.audio import CODEC_HZ, conditioning_mel
from myxtts.config import GptConfig
from myxtts.gpt import Gpt, Ignored, gpt_loss, lay_out
from myxtts.importer.names import gpt_names
from myxtts.layers import Dropout
from myxtts.pipeline import Program
from myxtts.weights import named_weights

DEVICE = "/CPU:1"
COMPILERS = pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])


def tiny_config() -> GptConfig:
    sizes = json.loads((FOLDER / "tiny_config.json").read_text())["gpt"]
    return GptConfig(
        layers=sizes["layers"],
        width=sizes["model_dim"],
        heads=sizes["heads"],
        text_tokens=sizes["number_text_tokens"],
        text_start=sizes["start_text_token"],
        text_stop=sizes["stop_text_token"],
        max_text_tokens=sizes["max_text_tokens"],
        audio_tokens=sizes["num_audio_tokens"],
        max_audio_tokens=sizes["max_mel_tokens"],
    )


@cache
def tiny_gpt(precision: str = "float32", *, recompute: bool = False) -> Gpt:
    with tf.device(DEVICE):
        gpt = Gpt(tiny_config(), precision, recompute=recompute)
    give_golden_weights(gpt, "weights_gpt", gpt_names(gpt.config))
    return gpt


def golden_batch() -> dict[str, tf.Tensor]:
    given = golden("gpt_train")
    with tf.device(DEVICE):
        return {
            "text": tf.constant(given["in.text_inputs"]),
            "text_lengths": tf.constant(given["in.text_lengths"]),
            "codes": tf.constant(given["in.audio_codes"][:, :24]),
            "samples": tf.constant(given["in.wav_lengths"]),
            "mel": tf.constant(given["in.cond_mels"][:, 0].transpose(0, 2, 1)),
            "voice_from_to": tf.constant(given["in.cond_idxs"]),
        }


def run(gpt: Gpt, batch: dict[str, tf.Tensor], ignored: Ignored = "nothing") -> Any:
    sequence = lay_out(
        gpt.config, batch["text"], batch["text_lengths"], batch["codes"], batch["samples"]
    )
    logits = gpt(gpt.voice(batch["mel"]), sequence)
    loss = gpt_loss(logits.text_BXV, logits.audio_BYV, sequence, batch["voice_from_to"], ignored)
    return logits, loss


@COMPILERS
def test_losses_and_logits_are_the_references(jit: bool) -> None:
    gpt, out = tiny_gpt(), golden("gpt_train")
    logits, loss = Program(lambda batch: run(gpt, batch), DEVICE, jit=jit)(golden_batch())
    assert distance(loss.text.numpy(), out["out.loss_text"]) < WITHIN
    assert distance(loss.audio.numpy(), out["out.loss_mel"]) < WITHIN
    for ours, theirs in ((logits.text_BXV, "text_logits"), (logits.audio_BYV, "mel_logits")):
        assert distance(ours.numpy().transpose(0, 2, 1), out[f"out.{theirs}"]) < WITHIN


@COMPILERS
@pytest.mark.parametrize("recompute", [False, True], ids=["kept", "recomputed"])
def test_gradients_are_the_references(jit: bool, recompute: bool) -> None:
    gpt, out = tiny_gpt(recompute=recompute), golden("gpt_train")
    found = Program(lambda batch: gradients(gpt, batch), DEVICE, jit=jit)(golden_batch())
    layouts = {name.theirs: name for name in gpt_names(gpt.config)}
    squares = sum(float(tf.reduce_sum(tf.square(g))) for g in found.values())
    assert distance(np.array(squares**0.5), out["out.grad_global_norm"]) < WITHIN
    checked = 0
    for key, theirs in out.items():
        if key.startswith("out.grad."):
            name = layouts[key.removeprefix("out.grad.")]
            assert distance(name.layout.theirs(found[name.ours].numpy()), theirs) < WITHIN, key
            checked += 1
    assert checked == 15


def gradients(gpt: Gpt, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    weights = named_weights(gpt)
    with tf.GradientTape() as tape:
        _, loss = run(gpt, batch)
        total = 0.01 * loss.text + loss.audio
    found = tape.gradient(total, [w.value for w in weights.values()])
    return dict(zip(weights, map(tf.convert_to_tensor, found), strict=True))


def test_the_reference_leaves_the_last_clips_voice_out_of_the_loss_four_times_too_far() -> None:
    gpt, out = tiny_gpt(), golden("gpt_train")
    _, loss = Program(lambda batch: run(gpt, batch, "reference"), DEVICE)(golden_batch())
    assert distance(loss.audio.numpy(), out["out.loss_mel_with_cond_idxs"]) < WITHIN
    assert distance(loss.text.numpy(), out["out.loss_text_with_cond_idxs"]) < WITHIN


@COMPILERS
def test_a_voice_is_the_references(jit: bool) -> None:
    gpt, given = tiny_gpt(), golden("gpt_conditioning")
    with tf.device(DEVICE):
        mel = tf.constant(given["in.cond_mel"].transpose(0, 2, 1))
    frames, voice = Program(lambda m: (gpt.conditioning(m), gpt.voice(m)), DEVICE, jit=jit)(mel)
    assert distance(frames.numpy().transpose(0, 2, 1), given["out.encoder_out"]) < WITHIN
    assert distance(voice.numpy().transpose(0, 2, 1), given["out.style_emb"]) < WITHIN


@pytest.mark.parametrize(("seconds", "theirs"), [(1, "chunked"), (4, "whole")])
def test_a_voice_is_the_mean_over_the_pieces_of_a_clip(seconds: int, theirs: str) -> None:
    gpt, given = tiny_gpt(), golden("gpt_conditioning")
    size = seconds * CODEC_HZ
    wave = given["in.audio_22k"]
    pieces = [wave[:, i : i + size] for i in range(0, wave.shape[1], size)]
    stats = tf.constant(given["in.mel_stats"])
    with tf.device(DEVICE):
        voices = [gpt.voice(conditioning_mel(tf.constant(p), stats)) for p in pieces]
    mean = np.mean([v.numpy() for v in voices], axis=0)
    assert distance(mean, given[f"out.cond_latents_{theirs}"]) < WITHIN


def test_latents_of_a_whole_pass_are_the_references() -> None:
    gpt, given = tiny_gpt(), golden("gpt_generate")
    codes = given["out.codes_for_latents"]
    with tf.device(DEVICE):
        text, codes = tf.constant(given["in.text_tokens"][:1]), tf.constant(codes)
        sequence = lay_out(gpt.config, text, [7], codes, [35 * 1024])
        latents = gpt.latents(tf.constant(given["in.cond_latents"][:1]), sequence)
    assert distance(latents[:, :35].numpy(), given["out.latents"]) < WITHIN


def test_the_same_key_drops_the_same_numbers_and_another_key_others() -> None:
    gpt, batch = tiny_gpt(), golden_batch()

    def dropped(key: tf.Tensor) -> tf.Tensor:
        sequence = lay_out(
            gpt.config, batch["text"], batch["text_lengths"], batch["codes"], batch["samples"]
        )
        return gpt(gpt.voice(batch["mel"]), sequence, dropout=Dropout(0.1, key)).audio_BYV

    with tf.device(DEVICE):
        keys = [tf.constant(key) for key in ([1, 2], [1, 2], [1, 3])]
    program = Program(dropped, DEVICE)
    first, again, other = (program(key).numpy() for key in keys)
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)
