"""A model that we saved and exported, loaded by the reference: the same answers, or not.

    .venv/bin/python benchmarks/reference_check.py REF/bin/python

A random model is saved as a folder, exported in both forms, and loaded strictly into the
reference's own classes; both get the same inputs. What the reference then saves is imported
again. Ends with 1 where an answer differs by more than 1e-4 of the largest value, or a code does.
Vocoder and speaker encoder have the released sizes: the reference's class builds no others.
Legend: B batch, T text, M codes, F frames, A mels, S samples, P vectors of the voice, D width.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from myxtts.audio import CODEC_HZ, SAMPLES_PER_CODE, conditioning_mel, dvae_mel
from myxtts.codec import Codec
from myxtts.config import DevicesConfig, ModelConfig
from myxtts.devices import open_devices, plan_devices
from myxtts.gpt import GREEDY, Decoder, Gpt, Request, decoding_weights, gpt_loss, lay_out
from myxtts.importer.reading import import_model
from myxtts.importer.writing import export_model
from myxtts.model_folder.files import MEL_STATS, PARTS, ModelFolder, open_model_folder
from myxtts.model_folder.networks import (
    load_codec,
    load_gpt,
    load_speaker,
    load_vocoder,
    save_model_folder,
)
from myxtts.speaker import Speaker, voice_vector
from myxtts.text import Tokenizer, read_vocabulary
from myxtts.text.vocabulary import START, STOP
from myxtts.vocoder import Vocoder
from myxtts.weights import named_weights

DEVICE = "/CPU:0"
WITHIN = 1e-4
ROOT = Path(__file__).parent
VOCABULARY = ROOT.parent / "tests" / "golden" / "tiny_vocab.json"
WORDS = "the quick brown fox jumps over the lazy dog."
CHUNK_SECONDS = 1
CODES = 40
PENALTY = 5.0
LOUDER = 3.5

Array = NDArray[Any]
Answers = dict[str, Array]
Size = Literal["tiny", "small", "normal", "big"]


def model_of(size: Size) -> ModelConfig:
    """The size's GPT and codec with the vocabulary at hand, and the released rest."""
    vocabulary = read_vocabulary(VOCABULARY)
    tokens = {
        "text_tokens": len(vocabulary),
        "text_start": vocabulary.tokens[START],
        "text_stop": vocabulary.tokens[STOP],
    }
    sizes, released = ModelConfig(size=size), ModelConfig(size="big")
    gpt = sizes.gpt.model_copy(update=tokens)
    return ModelConfig(
        gpt=gpt, codec=sizes.codec, vocoder=released.vocoder, speaker=released.speaker
    )


def random_networks(model: ModelConfig, random: np.random.Generator) -> dict[str, keras.Model]:
    """No weight is as it starts: a zero or a one in its place would show nothing."""
    latent_width, speaker_width = model.gpt.width, model.speaker.width
    with tf.device(DEVICE):
        networks = {
            "gpt": Gpt(model.gpt),
            "codec": Codec(model.codec),
            "vocoder": Vocoder(
                model.vocoder, latent_width=latent_width, speaker_width=speaker_width
            ),
            "speaker": Speaker(model.speaker),
        }
    for network in networks.values():
        for name, weight in named_weights(network).items():
            stir(name.rpartition("/")[2], weight, random)
    return networks


def stir(kind: str, weight: keras.Variable, random: np.random.Generator) -> None:
    """Moves every number a little; what scales stays above nothing."""
    noise = random.normal(size=weight.shape).astype(np.float32)
    if kind == "moving_variance":
        weight.assign(weight.numpy() * np.exp(0.2 * noise))
    elif kind == "magnitude":
        # With those that a vocoder starts with its sound hardly depends on the latents.
        weight.assign(weight.numpy() * LOUDER * np.exp(0.1 * noise))
    else:
        weight.assign(weight.numpy() + 0.02 * noise)


def made_up(model: ModelConfig, random: np.random.Generator) -> Answers:
    """A padded batch to learn from, a recording, and a voice to speak with."""
    seconds = np.arange(round(2.6 * CODEC_HZ)) / CODEC_HZ
    tone = np.sin(2 * np.pi * (150 + 60 * np.sin(3 * seconds)) * seconds) * np.sin(9 * seconds)
    wave = 0.3 * tone + 0.05 * random.normal(size=seconds.shape)
    width, lengths_B = model.gpt.width, np.array([12, 7, 9])
    text_BT = random.integers(3, model.gpt.text_tokens, (3, 12))
    return {
        # The reference learns from what the padding of a text holds, so it must hold stops.
        "text": np.where(np.arange(12) < lengths_B[:, None], text_BT, model.gpt.text_stop),
        "text_lengths": lengths_B,
        "codes": random.integers(0, model.codec.codes, (3, 25)).astype(np.int64),
        "samples": np.array([25 * SAMPLES_PER_CODE, 20 * SAMPLES_PER_CODE - 300, 11264]),
        "mel": random.normal(size=(3, 1, 80, 75)).astype(np.float32),
        "wave": wave[None].astype(np.float32),
        "voice": random.normal(size=(1, 32, width)).astype(np.float32),
        "latents": random.normal(size=(1, 13, width)).astype(np.float32),
        "speaker": random.normal(size=(1, model.speaker.width)).astype(np.float32),
    }


def our_answers(folder: ModelFolder, given: Answers) -> Answers:
    """Those of the networks as the saved folder gives them back."""
    gpt, codec = load_gpt(folder, DEVICE), load_codec(folder, DEVICE)
    stats = tf.constant(folder.mel_stats())
    with tf.device(DEVICE):
        tensors = {name: tf.constant(value) for name, value in given.items()}
        mel_BFA = dvae_mel(tensors["wave"], stats)
        codes_BM = codec.encode(mel_BFA)
        return {
            **learn(gpt, tensors),
            **speak(folder, gpt, tensors),
            "conditioning latents": voice(gpt, given["wave"], stats),
            "speaker vector": voice_vector(load_speaker(folder, DEVICE), tensors["wave"]).numpy(),
            "DVAE mel": mel_BFA.numpy(),
            "DVAE codes": codes_BM.numpy(),
            "DVAE mel of codes": codec.decode(codes_BM).numpy(),
        }


def learn(gpt: Gpt, given: dict[str, tf.Tensor]) -> Answers:
    """Losses and logits of the padded batch, without dropout."""
    clips = [given[name] for name in ("text", "text_lengths", "codes", "samples")]
    sequence = lay_out(gpt.config, *clips)
    logits = gpt(gpt.voice(tf.transpose(given["mel"][:, 0], [0, 2, 1])), sequence)
    loss = gpt_loss(logits.text_BXV, logits.audio_BYV, sequence)
    return {
        "loss, text": loss.text.numpy(),
        "loss, audio": loss.audio.numpy(),
        "logits, text": logits.text_BXV.numpy(),
        "logits, audio": logits.audio_BYV.numpy(),
    }


def voice(gpt: Gpt, wave_BS: Array, stats: tf.Tensor) -> Array:
    """The mean over pieces of the recording."""
    size = CHUNK_SECONDS * CODEC_HZ
    pieces = [wave_BS[:, at : at + size] for at in range(0, wave_BS.shape[1], size)]
    voices = [gpt.voice(conditioning_mel(tf.constant(piece), stats)) for piece in pieces]
    return np.asarray(tf.reduce_mean(tf.stack(voices), 0))


def speak(folder: ModelFolder, gpt: Gpt, given: dict[str, tf.Tensor]) -> Answers:
    """Codes by two rules, their latents, and the sound of those and of the given latents."""
    vocoder = load_vocoder(folder, DEVICE).folded()
    decoder = Decoder(gpt.config, decoding_weights(gpt, "float32", DEVICE), DEVICE)
    ids = Tokenizer.load(folder.vocabulary).encode(WORDS, "en")
    request = Request(given["voice"], [ids], limit=CODES)
    greedy = decoder.decode(request, GREEDY)
    spoken = decoder.decode(request, replace(GREEDY, repetition_penalty=PENALTY))
    return {
        "text ids": np.array([ids]),
        "greedy codes": greedy.code_BN.numpy(),
        "greedy latents": greedy.latent_BND.numpy(),
        "penalised codes": spoken.code_BN.numpy(),
        "sound of latents": vocoder(given["latents"], given["speaker"]).numpy(),
        "sound of words": vocoder(spoken.latent_BND, given["speaker"]).numpy(),
    }


def reference_answers(python: Path, folder: Path, model: ModelConfig) -> Answers:
    """Those of the reference, with what it was given beside the tensors."""
    facts = {
        "codec": model.codec.model_dump(),
        "words": WORDS,
        "codes": CODES,
        "penalty": PENALTY,
        "chunk_seconds": CHUNK_SECONDS,
    }
    (folder / "given.json").write_text(json.dumps(facts), encoding="utf-8")
    command = [str(python), str(ROOT / "reference_answers.py"), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode:
        sys.exit(f"the reference ended with {ran.returncode}:\n{ran.stderr[-3000:]}")
    return load_file(folder / "answers.safetensors")


def differing_tensors(one: ModelFolder, other: ModelFolder) -> int:
    """How many weights of one folder are not bit-same in the other."""
    count = 0
    for file in [*(f"{part}.safetensors" for part in PARTS), MEL_STATS]:
        mine, theirs = load_file(one.path / file), load_file(other.path / file)
        names = mine.keys() | theirs.keys()
        count += sum(not same(mine.get(name), theirs.get(name)) for name in names)
    return count


def same(one: Array | None, other: Array | None) -> bool:
    """Two tensors of the same kind, shape and bits."""
    if one is None or other is None or one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.tobytes() == other.tobytes()


def compare(ours: Answers, theirs: Answers) -> list[str]:
    """Prints a line for each answer, and gives the names of those that differ."""
    print(f"{'':24}{'shape':>18}{'their largest':>16}{'their spread':>14}{'difference':>12}")
    wrong = []
    for name, answer in theirs.items():
        mine, counted = ours[name], answer.dtype.kind in "iu"
        fits = mine.shape == answer.shape
        gap = float(np.abs(mine.astype(np.float64) - answer).max()) if fits else np.inf
        largest = float(np.abs(answer).max())
        gap = gap if counted else gap / largest
        if not gap <= (0 if counted else WITHIN):
            wrong.append(name)
        row = f"{list(answer.shape)!s:>18}{largest:16.4g}{answer.std():14.2g}{gap:12.1g}"
        print(f"{name:24}{row}{'' if fits else f'  ours is {list(mine.shape)}'}")
    return wrong


def check(python: Path, size: Size, folder: Path) -> list[str]:
    """Names of all that differs."""
    random = np.random.default_rng(7)
    keras.utils.set_random_seed(7)
    model = model_of(size)
    stats_M = random.uniform(0.5, 2.0, 80).astype(np.float32)
    networks = random_networks(model, random)
    saved = save_model_folder(folder / "ours", model, networks, VOCABULARY, stats_M)
    export_model(saved.path, folder / "exported", print, pth=True)
    export_model(saved.path, folder / "safetensors", print)
    given = made_up(model, random)
    save_file(given, folder / "given.safetensors")
    theirs = reference_answers(python, folder, model)
    wrong = compare(our_answers(open_model_folder(saved.path), given), theirs)
    back = import_model(folder / "saved", folder / "back", print)
    unlike = differing_tensors(saved, back)
    print(f"saved by the reference and imported: {unlike} tensors differ from the first ones")
    return [*wrong, *(["the way back"] if unlike else [])]


def main() -> None:
    """Ends with 1 where anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("python", type=Path, help="the reference's Python")
    parser.add_argument("--size", default="tiny", choices=get_args(Size))
    options = parser.parse_args()
    open_devices(plan_devices(DevicesConfig(emulate=1), []))
    with tempfile.TemporaryDirectory() as folder:
        wrong = check(options.python, options.size, Path(folder))
    if wrong:
        sys.exit(f"differ by more than {WITHIN:g}: {', '.join(wrong)}")
    print(f"no answer differs by more than {WITHIN:g} of its largest value, and no code does")


if __name__ == "__main__":
    main()
