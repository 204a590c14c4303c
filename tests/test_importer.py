"""`myxtts import` and `myxtts export`: the reference's files in, a model's folder, and back."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from downloads import (
    VOICES,
    Arrays,
    bits,
    download,
    old_layout,
    pickled,
    silent,
    tensor,
    vocabulary,
)
from golden_numbers import WITHIN, distance, golden
from safetensors.numpy import load_file, save_file

from myxtts.config import ModelConfig
from myxtts.errors import UserError
from myxtts.gpt import Gpt, lay_out
from myxtts.importer.reading import import_model
from myxtts.importer.shapes import PREFIXES, rows
from myxtts.importer.source import Weights
from myxtts.importer.state import open_codec, open_mel_stats, open_model, open_voices
from myxtts.importer.writing import export_model, made_buffers
from myxtts.model_folder.files import PARTS, ModelFolder, open_model_folder
from myxtts.model_folder.networks import (
    load_codec,
    load_gpt,
    load_speaker,
    load_vocoder,
    save_learnt,
    save_model_folder,
)
from myxtts.pipeline import Program
from myxtts.text import write_vocabulary
from myxtts.weights import named_weights

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.
DEVICE = "/CPU:1"
KINDS = pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    path = tmp_path_factory.mktemp("tiny")
    return import_model(download().write(path / "download"), path / "model", silent)


def tensors(weights: Weights) -> Arrays:
    return {name: weights.read(name) for name in weights.tensors}


def everything(path: Path) -> dict[str, Any]:
    """Every tensor of a download, bit for bit."""
    with open_model(path) as model, open_codec(path) as codec:
        found = {**tensors(model.weights), **tensors(codec.weights)}
    with open_mel_stats(path) as stats, open_voices(path) as voices:
        found |= {"mel_stats.pth": stats.read("mel_stats"), **tensors(voices)}
    return {name: bits(array) for name, array in found.items()}


@KINDS
@pytest.mark.parametrize("pth", [False, True], ids=["safetensors", "pth"])
def test_there_and_back_is_bit_same(kind: str, pth: bool, tmp_path: Path) -> None:
    given = download(kind).write(tmp_path / "download")
    import_model(given, tmp_path / "model", silent)
    export_model(tmp_path / "model", tmp_path / "back", silent, pth=pth)
    before = everything(given)
    assert everything(tmp_path / "back") == before
    assert {shape[0] for shape in before.values()} == {"float32", "int64", kind}
    for name in ("config.json", "vocab.json"):
        assert (tmp_path / "back" / name).read_bytes() == (given / name).read_bytes()


def test_an_export_is_imported_like_a_download(folder: ModelFolder, tmp_path: Path) -> None:
    export_model(folder.path, tmp_path / "back", silent)
    again = import_model(tmp_path / "back", tmp_path / "model", silent)
    files = sorted(file.name for file in folder.path.iterdir())
    assert files == sorted(file.name for file in again.path.iterdir())
    for name in files:
        assert (again.path / name).read_bytes() == (folder.path / name).read_bytes(), name


def test_the_imported_gpt_gives_the_references_logits(folder: ModelFolder) -> None:
    gpt, given, out = load_gpt(folder, DEVICE), golden("gpt_train"), golden("gpt_train")

    def logits(text: Any, lengths: Any, codes: Any, samples: Any, mel: Any) -> Any:
        return gpt(gpt.voice(mel), lay_out(gpt.config, text, lengths, codes, samples))

    with tf.device(DEVICE):
        batch = [
            tf.constant(given[f"in.{name}"])
            for name in ("text_inputs", "text_lengths", "audio_codes", "wav_lengths")
        ]
        batch[2] = batch[2][:, :24]
        mel = tf.constant(given["in.cond_mels"][:, 0].transpose(0, 2, 1))
    found = Program(logits, DEVICE, jit=False)(*batch, mel)
    for ours, theirs in ((found.text_BXV, "text_logits"), (found.audio_BYV, "mel_logits")):
        assert distance(ours.numpy().transpose(0, 2, 1), out[f"out.{theirs}"]) < WITHIN


def test_the_imported_codec_gives_the_references_codes(folder: ModelFolder) -> None:
    codec, numbers = load_codec(folder, DEVICE), golden("dvae")
    with tf.device(DEVICE):
        mel = tf.constant(numbers["in.mel"].transpose(0, 2, 1))
    codes = Program(codec.encode, DEVICE, jit=False)(mel)
    np.testing.assert_array_equal(codes, numbers["out.codes"])


def test_the_imported_vocoder_gives_the_references_sound(folder: ModelFolder) -> None:
    vocoder, numbers = load_vocoder(folder, DEVICE), golden("hifigan")
    with tf.device(DEVICE):
        given = [tf.constant(numbers["in.latents"]), tf.constant(numbers["in.speaker"][..., 0])]
    sound = Program(vocoder.__call__, DEVICE, jit=False)(*given)
    assert distance(sound.numpy(), numbers["out.wav_batch2"][:, 0]) < WITHIN


def test_the_imported_speaker_encoder_gives_the_references_voice(folder: ModelFolder) -> None:
    speaker, numbers = load_speaker(folder, DEVICE), golden("speaker_encoder")
    with tf.device(DEVICE):
        wave = tf.constant(numbers["in.audio_16k"])
    voice = Program(speaker.__call__, DEVICE, jit=False)(wave)
    assert distance(voice.numpy(), numbers["out.embedding_l2"]) < WITHIN


def test_mel_stats_and_voices_lie_in_the_folder(folder: ModelFolder) -> None:
    given = download()
    assert given.voices is not None
    assert bits(folder.mel_stats()) == bits(given.model["mel_stats"])
    assert folder.voices() == tuple(sorted(VOICES))
    for name in VOICES:
        voice, theirs = folder.voice(name), given.voices[name]
        np.testing.assert_array_equal(voice.latents_LD, theirs["gpt_cond_latent"][0])
        np.testing.assert_array_equal(voice.speaker_S, theirs["speaker_embedding"][0, :, 0])


def test_sizes_are_read_from_the_weights_and_the_vocabulary(folder: ModelFolder) -> None:
    model = open_model_folder(folder.path).model
    assert model == folder.model
    assert (model.gpt.layers, model.gpt.width, model.gpt.heads) == (3, 128, 4)
    assert (model.gpt.text_start, model.gpt.text_stop) == (61, 0)
    assert (model.gpt.max_text_tokens, model.gpt.max_audio_tokens) == (40, 48)
    assert (model.speaker.blocks, model.vocoder.width) == ((1, 2, 1, 1), 64)


def test_half_precision_weights_become_the_same_network(tmp_path: Path) -> None:
    made = [
        import_model(download(kind).write(tmp_path / kind), tmp_path / f"{kind} model", silent)
        for kind in ("float32", "float16")
    ]
    whole, half = (named_weights(load_codec(folder, DEVICE)) for folder in made)
    assert all(bits(whole[name].numpy()) == bits(half[name].numpy()) for name in whole)


OLD_NAMES = {
    "parametrizations.weight.original0": "weight_g",
    "parametrizations.weight.original1": "weight_v",
}


def as_trained(model: Arrays) -> Arrays:
    """The names of the public trainer's checkpoints and of older libraries, and their leftovers."""
    old = {}
    for name, array in model.items():
        for today, before in OLD_NAMES.items():
            name = name.replace(today, before)  # noqa: PLW2901
        old[f"xtts.{name}"] = array
    scrap = np.ones((2, 3), np.float32)
    for name in (
        "dvae.encoder.0.0.weight",
        "torch_mel_spectrogram_dvae.mel_stft.window",
        "xtts.gpt.gpt_inference.transformer.h.0.ln_1.weight",
        "xtts.gpt.gpt.wte.weight",
        "xtts.gpt.gpt.h.0.attn.bias",
    ):
        old[name] = scrap
    return old


def test_a_trainers_checkpoint_and_old_names_give_the_same_model(
    folder: ModelFolder, tmp_path: Path
) -> None:
    given = download()
    lines: list[str] = []
    given.model = as_trained(given.model)
    old = import_model(given.write(tmp_path / "download"), tmp_path / "model", lines.append)
    for part in PARTS:
        assert old.weights(part).read_bytes() == folder.weights(part).read_bytes()
    assert any("left out 5 copies: dvae.encoder.0.0.weight" in line for line in lines)


def test_the_layout_of_old_torch_is_read_too(folder: ModelFolder, tmp_path: Path) -> None:
    given = download()
    codec, given.codec = given.codec, None
    assert codec is not None
    path = given.write(tmp_path / "download")
    kinds = {"float32": "FloatStorage", "int64": "LongStorage"}
    entries, storages = {}, {}
    for number, (name, array) in enumerate(codec.items()):
        count, strides = array.size, tuple(n // array.itemsize for n in array.strides)
        entries[name] = tensor(
            key=str(number),
            kind=kinds[array.dtype.name],
            count=count,
            shape=array.shape,
            stride=strides,
        )
        storages[str(number)] = (count, array.tobytes())
    (path / "dvae.pth").write_bytes(old_layout(pickled(entries), storages))
    made = import_model(path, tmp_path / "model", silent)
    assert made.weights("codec").read_bytes() == folder.weights("codec").read_bytes()


def test_what_may_be_absent_is_told_and_not_needed(tmp_path: Path) -> None:
    given = download()
    lines: list[str] = []
    given.codec = given.mel_stats = given.voices = None
    made = import_model(given.write(tmp_path / "download"), tmp_path / "model", lines.append)
    for name in ("dvae", "mel_stats", "speakers_xtts"):
        assert sum(line.startswith(f"no {name}.pth: ") for line in lines) == 1
    assert (made.has("codec"), made.voices()) == (False, ())
    assert bits(made.mel_stats()) == bits(given.model["mel_stats"])
    with pytest.raises(UserError, match="has no codec"):
        load_codec(made, DEVICE)
    export_model(made.path, tmp_path / "back", lines.append)
    assert not (tmp_path / "back" / "dvae.safetensors").exists()


def test_two_different_mel_stats_are_told_and_both_kept(tmp_path: Path) -> None:
    given = download()
    lines: list[str] = []
    assert given.mel_stats is not None
    given.mel_stats = given.mel_stats * 2
    path = given.write(tmp_path / "download")
    made = import_model(path, tmp_path / "model", lines.append)
    assert any("mel_stats.pth differs" in line for line in lines)
    assert bits(made.mel_stats()) == bits(given.mel_stats)
    export_model(made.path, tmp_path / "back", silent)
    assert everything(tmp_path / "back") == everything(path)


def test_numbers_that_are_none_are_told_by_name(tmp_path: Path) -> None:
    given = download()
    lines: list[str] = []
    given.model["gpt.mel_head.bias"][3] = np.nan
    import_model(given.write(tmp_path / "download"), tmp_path / "model", lines.append)
    assert any("audio_head/bias has 1 numbers that are not finite" in line for line in lines)


def test_a_model_made_here_leaves_with_all_that_the_reference_stores(tmp_path: Path) -> None:
    sizes = {
        "gpt": {"layers": 1, "width": 32, "heads": 4, "text_tokens": 64, "text_start": 61},
        "codec": {"width": 8, "code_width": 8},
        "vocoder": {"width": 16},
        "speaker": {"width": 32, "filters": [8, 8, 16, 16], "blocks": [1, 2, 1, 1]},
    }
    model = ModelConfig.model_validate({"size": "tiny", **sizes})
    write_vocabulary(vocabulary(), tmp_path / "vocab.json")
    with tf.device(DEVICE):
        network = Gpt(model.gpt)
    # The other parts come from what the tables say, so that only one network is built.
    made = save_model_folder(
        tmp_path / "model", model, {"gpt": network}, tmp_path / "vocab.json", np.ones(80)
    )
    for part in PARTS[1:]:
        arrays = {row.ours: np.ones(row.shape, np.float32) for row in rows(part, model)}
        save_file(arrays, made.file_of(part))
    export_model(made.path, tmp_path / "back", silent)
    theirs = load_file(tmp_path / "back" / "model.safetensors")
    expected = golden("weights_hifigan_decoder")
    assert {n for n in theirs if n.startswith("hifigan_decoder.speaker")} == {
        f"hifigan_decoder.{n}" for n in expected if n.startswith("speaker")
    }
    for name in ("0.filter", "1.mel_scale.fb", "1.spectrogram.window"):
        array = expected[f"speaker_encoder.torch_spec.{name}"]
        assert distance(theirs[f"{PREFIXES['speaker']}torch_spec.{name}"], array) < WITHIN
    written = json.loads((tmp_path / "back" / "config.json").read_text())["model_args"]
    assert (written["gpt_layers"], written["gpt_num_audio_tokens"]) == (1, 1026)
    assert import_model(tmp_path / "back", tmp_path / "again", silent).model.gpt == model.gpt


def test_the_released_model_has_as_many_tensors_as_the_reference_says() -> None:
    big = ModelConfig(size="big")
    # XTTS.md §12: 426 under gpt., 536 under hifigan_decoder. with what is kept aside.
    counts = {part: len(rows(part, big)) for part in PARTS}
    buffers = dict(made_buffers(rows("speaker", big), big.codec.codes))
    aside = sum(name.startswith("hifigan_decoder.") for name in buffers)
    assert counts["gpt"] == 426
    assert counts["vocoder"] + counts["speaker"] + aside == 536


def test_levels_that_a_training_measured_leave_with_their_model(
    folder: ModelFolder, tmp_path: Path
) -> None:
    made = save_learnt(tmp_path / "model", {}, folder)
    levels = {"mel_stats": np.full(80, 2.0, np.float32), "mel_mean": np.ones(80, np.float32)}
    save_file(levels, made.path / "mel_stats.safetensors")
    export_model(made.path, tmp_path / "back", silent)
    back = load_file(tmp_path / "back" / "mel_stats.safetensors")
    assert {name: bits(array) for name, array in back.items()} == {
        "mel_stats": bits(levels["mel_stats"])
    }


def test_learnt_weights_leave_with_the_rest_of_their_folder(
    folder: ModelFolder, tmp_path: Path
) -> None:
    codec = load_codec(folder, DEVICE)
    named_weights(codec)["encoder/out/bias"].assign(np.full(32, 7.0))
    learnt = save_learnt(tmp_path / "learnt", {"codec": codec}, folder)
    export_model(learnt.path, tmp_path / "back", silent)
    export_model(folder.path, tmp_path / "before", silent)
    before, after = everything(tmp_path / "before"), everything(tmp_path / "back")
    assert {name for name in before if before[name] != after[name]} == {"encoder.5.bias"}


@pytest.mark.parametrize("part", PARTS)
def test_the_table_of_shapes_is_the_networks(part: str, folder: ModelFolder) -> None:
    loaders = {
        "gpt": load_gpt,
        "codec": load_codec,
        "vocoder": load_vocoder,
        "speaker": load_speaker,
    }
    weights = named_weights(loaders[part](folder, DEVICE))
    table = {row.ours: row.shape for row in rows(part, folder.model)}
    assert table == {name: tuple(variable.shape) for name, variable in weights.items()}


def test_the_commands_do_both_ways_without_tensorflow(folder: ModelFolder, tmp_path: Path) -> None:
    download().write(tmp_path / "download")
    code = (
        "import sys; from myxtts.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(code or bool({'tensorflow', 'keras', 'torch'} & set(sys.modules)))"
    )
    for words in ("import download --out model", "export model --out back --pth"):
        ran = subprocess.run(
            [sys.executable, "-c", code, *words.split()],
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "back" / "model.pth").is_file()
