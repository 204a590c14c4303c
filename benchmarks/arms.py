"""Our works, section by section, named as the reference's script names its own.

Legend: B batch, F frames, A mels, S samples, N codes, L latents, D width, G speaker vector.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from beside import Arm, Section
from figures import Work
from step import MELS, Lengths, TrainingStep

from myxtts.audio import CODEC_HZ, SAMPLES_PER_CODE, SPEAKER_HZ, VOCODER_HZ, dvae_mel
from myxtts.codec import Codec
from myxtts.config import (
    CodecConfig,
    Config,
    GptConfig,
    ModelConfig,
    SpeakerConfig,
    VocoderConfig,
)
from myxtts.gpt import GREEDY, Decoder, Gpt, Kind, Request, Sampling, decoding_weights
from myxtts.pipeline import Program, finish
from myxtts.speaker import Speaker
from myxtts.vocoder import Vocoder, samples_for_latents

DEVICE = "/CPU:0"
SECONDS = 6.0
BATCHES = (1, 8)
LATENT_WIDTH = 1024
VOICE_VECTORS = 32
CODES = 150
NEVER = -1e9
KINDS: tuple[Kind, ...] = ("float32", "bfloat16", "int8")
COMPILERS = {"graph": False, "XLA": True}
SIZES = {
    "tiny": GptConfig(width=256, layers=6, heads=4),
    "small": GptConfig(width=512, layers=8, heads=8),
    "v2": GptConfig(width=1024, layers=30, heads=16),
}

Arms = dict[str, Arm]
Compilers = dict[str, bool]
"""Whether XLA compiles, by the name of the compiler."""


def sections(parts: list[str], sizes: list[str], compilers: list[str]) -> list[Section]:
    """Those of these parts, the GPT's in these sizes; v2 is too large to be trained here."""
    chosen = {name: COMPILERS[name] for name in compilers}
    found = []
    for size in sizes:
        if "train" in parts and size != "v2":
            found.append(Section(f"train/{size}", "clips/s", partial(train, size, chosen)))
        if "generate" in parts:
            found.append(Section(f"generate/{size}", "codes/s", partial(decoding, size)))
        if "cond" in parts:
            found.append(Section(f"cond/{size}", "s of sound/s", partial(voice, size, chosen)))
    whole: dict[str, Callable[[Compilers], Arms]] = {"dvae": codec, "hifigan": vocoder}
    found += [
        Section(p, "s of sound/s", partial(build, chosen))
        for p, build in whole.items()
        if p in parts
    ]
    return found


def train(size: str, compilers: Compilers) -> Arms:
    """A whole step, and the parts of it that the reference's script has as well or that add up."""
    lengths, arms = Lengths(), Arms()
    config = Config(model=ModelConfig(gpt=SIZES[size]))
    for compiler, jit in compilers.items():
        step = TrainingStep(config, DEVICE, lengths, jit=jit)
        works: dict[str, tuple[Work, tuple[str, ...]]] = {
            "step": (step, ("train_step",)),
            "forward alone": (step.forward, ("forward_only",)),
            "gradients alone": (step.gradients, ()),
        }
        for name, (work, theirs) in works.items():
            work()
            arms[f"{name}, {compiler}"] = Arm(work, lengths.batch, theirs)
    half = TrainingStep(config, DEVICE, lengths, precision="mixed_bfloat16")
    half()
    arms["step in bfloat16, graph"] = Arm(half, lengths.batch, ("train_step",))
    return arms


def decoding(size: str) -> Arms:
    """Codes of one row, its latents with them, with the weights kept in each kind of number."""
    config, arms = SIZES[size], Arms()
    with tf.device(DEVICE):
        gpt = Gpt(config)
        # Never the stop, so that all say as many codes.
        gpt.audio_head.bias.assign(tf.one_hot(config.audio_stop, config.audio_tokens) * NEVER)
        voice_BPD = noise(1, VOICE_VECTORS, config.width)
    text = np.random.default_rng(1).integers(3, config.text_tokens, Lengths().text).tolist()
    request = Request(voice_BPD, [text], limit=CODES)
    for kind in KINDS:
        decoder = Decoder(config, decoding_weights(gpt, kind, DEVICE), DEVICE)
        for name, sampling in (("greedy", GREEDY), ("sampled", Sampling())):
            work = partial(say, decoder, request, sampling)
            work()
            arms[f"{name}, {kind}"] = Arm(work, CODES, (name,))
    return arms


def say(decoder: Decoder, request: Request, sampling: Sampling) -> None:
    """Decodes, and sees that it was all of it."""
    spoken = decoder.decode(request, sampling)
    if (said := int(spoken.length_B[0])) != CODES:
        raise AssertionError(f"{said} codes were said of {CODES}")


def voice(size: str, compilers: Compilers) -> Arms:
    """The voice of one clip's mel."""
    with tf.device(DEVICE):
        gpt, mel_BFA = Gpt(SIZES[size]), noise(1, Lengths().frames, MELS)
    return compiled(compilers, "voice", gpt.voice, [mel_BFA], SECONDS, ("style_embedding",))


def codec(compilers: Compilers) -> Arms:
    """Sound to mel, mel to codes and codes to mel, at the released size."""
    arms = Arms()
    with tf.device(DEVICE):
        network, stats = Codec(CodecConfig()), tf.ones([MELS])
        tiled = network.tiled()
        for rows in BATCHES:
            wave_BS = noise(rows, round(SECONDS * CODEC_HZ))
            mel_BFA = dvae_mel(wave_BS, stats)
            codes_BN = network.encode(mel_BFA)
            works: dict[str, tuple[Callable[..., Any], list[tf.Tensor]]] = {
                "encode": (network.encode, [mel_BFA]),
                "encode tiled": (tiled.encode, [mel_BFA]),
                "mel": (dvae_mel, [wave_BS, stats]),
                "decode": (network.decode, [codes_BN]),
            }
            for name, (work, given) in works.items():
                part, _, way = name.partition(" ")
                theirs = (f"batch{rows}", part)
                shown = f"{part} {rows}" + (f", {way}" if way else "")
                arms |= compiled(compilers, shown, work, given, rows * SECONDS, theirs)
    return arms


def vocoder(compilers: Compilers) -> Arms:
    """Latents to sound with the weight norm as it is trained and folded, and sound to a voice."""
    latents = round(SECONDS * CODEC_HZ / SAMPLES_PER_CODE)
    config, speaker_config = VocoderConfig(width=512), SpeakerConfig()
    with tf.device(DEVICE):
        latents_BLD, speaker_BG = noise(1, latents, LATENT_WIDTH), noise(1, speaker_config.width)
        network = Vocoder(config, latent_width=LATENT_WIDTH, speaker_width=speaker_config.width)
        folded, speaker = network.folded(), Speaker(speaker_config)
        wave_BS = noise(1, round(SECONDS * SPEAKER_HZ))
    seconds, given = samples_for_latents(latents) / VOCODER_HZ, [latents_BLD, speaker_BG]
    return {
        # The reference speaks with its weight norm kept; folded by hand it is slower.
        **compiled(compilers, "sound folded", folded, given, seconds, ("weight_norm_kept",)),
        **compiled(compilers, "sound normed", network, given, seconds, ("weight_norm_kept",)),
        **compiled(compilers, "speaker", speaker, [wave_BS], SECONDS, ("speaker_encoder",)),
    }


def compiled(
    compilers: Compilers,
    name: str,
    body: Callable[..., Any],
    given: list[tf.Tensor],
    units: float,
    theirs: tuple[str, ...],
) -> Arms:
    """The same work by both compilers, each compiled now."""
    arms = Arms()
    for compiler, jit in compilers.items():
        program = Program(body, DEVICE, jit=jit, name=name)
        work = partial(done, program, *given)
        work()
        arms[f"{name}, {compiler}"] = Arm(work, units, theirs)
    return arms


def done(program: Program, *given: Any) -> None:
    """Runs the program and waits until it is over."""
    results = program(*given)
    floats = [each for each in tf.nest.flatten(results) if each.dtype != tf.int32]
    if floats:
        finish(floats)


def noise(*shape: int) -> tf.Tensor:
    """Quiet normal numbers, the same at every run."""
    return tf.random.stateless_normal(shape, [len(shape), shape[-1]], stddev=0.1)
