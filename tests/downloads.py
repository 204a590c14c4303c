"""A download of the reference's files at tiny sizes, out of the golden weights; and its faults."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from golden_numbers import FOLDER, Array, golden

from myxtts.importer.slots import slot_with
from myxtts.importer.torch_writer import Tree, write_torch
from myxtts.text.vocabulary import SPECIAL, Vocabulary, write_vocabulary

SIZES = json.loads((FOLDER / "tiny_config.json").read_text())
VOICES = ("Ana Florence", "a/b.c", "Zoë")
Arrays = dict[str, Array]


def silent(_line: str) -> None:
    """Says nothing."""


def ignore(_count: int) -> None:
    """Counts nothing."""


@dataclass
class Download:
    """What is about to be written, for a test to change."""

    model: Arrays
    codec: Arrays | None
    mel_stats: Array | None
    voices: dict[str, Arrays] | None
    config: dict[str, Any]

    def write(self, folder: Path) -> Path:
        """As torch.save would, with the settings and the vocabulary beside."""
        folder.mkdir(parents=True, exist_ok=True)
        write_pth(folder / "model.pth", {"model": self.model, "step": {}})
        if self.codec is not None:
            write_pth(folder / "dvae.pth", self.codec)
        if self.mel_stats is not None:
            write_pth(folder / "mel_stats.pth", self.mel_stats)
        if self.voices is not None:
            write_pth(folder / "speakers_xtts.pth", self.voices)
        (folder / "config.json").write_text(json.dumps(self.config))
        write_vocabulary(vocabulary(), folder / "vocab.json")
        return folder


def download(kind: str = "float32") -> Download:
    """The golden weights in one kind of number; integers stay what they are."""
    random = np.random.default_rng(3)
    model = {f"gpt.{name}": array for name, array in golden("weights_gpt").items()}
    model |= {f"hifigan_decoder.{n}": a for n, a in golden("weights_hifigan_decoder").items()}
    mel_stats = golden("gpt_conditioning")["in.mel_stats"]
    model["mel_stats"] = mel_stats
    gpt, vocoder = SIZES["gpt"], SIZES["hifigan"]
    voices = {
        name: {
            "gpt_cond_latent": random.normal(size=(1, 32, gpt["model_dim"])).astype(np.float32),
            "speaker_embedding": random.normal(size=(1, vocoder["d_vector_dim"], 1)).astype("f4"),
        }
        for name in VOICES
    }
    return Download(
        of_kind(model, kind), of_kind(golden("weights_dvae"), kind), mel_stats, voices, settings()
    )


def of_kind(arrays: Arrays, kind: str) -> Arrays:
    """Floating numbers in another kind."""
    return {
        name: array.astype(kind) if array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }


def settings() -> dict[str, Any]:
    """A config.json as the reference writes it."""
    gpt, vocoder = SIZES["gpt"], SIZES["hifigan"]
    arguments = {
        "gpt_layers": gpt["layers"],
        "gpt_n_model_channels": gpt["model_dim"],
        "gpt_n_heads": gpt["heads"],
        "gpt_number_text_tokens": gpt["number_text_tokens"],
        "gpt_num_audio_tokens": gpt["num_audio_tokens"],
        "gpt_start_text_token": None,
        "gpt_stop_text_token": None,
        "gpt_use_perceiver_resampler": True,
        "decoder_input_dim": vocoder["decoder_input_dim"],
        "d_vector_dim": vocoder["d_vector_dim"],
    }
    return {"model": "xtts", "model_args": arguments, "temperature": 0.75}


def vocabulary() -> Vocabulary:
    """As many tokens as the golden GPT has, start and stop where it has them."""
    gpt = SIZES["gpt"]
    ids = {"[STOP]": gpt["stop_text_token"], "[UNK]": 1, "[SPACE]": 2}
    ids["[START]"] = gpt["start_text_token"]
    free = [n for n in range(gpt["number_text_tokens"]) if n not in ids.values()]
    tokens = {**ids, **{chr(0x61 + n): id_ for n, id_ in enumerate(free)}}
    return Vocabulary(tokens, [], list(SPECIAL))


def write_pth(file: Path, tree: Any) -> None:
    """A zip as torch.save makes it, out of nested dicts of arrays."""
    write_torch(file, _slots(tree), ignore)


def _slots(tree: Any) -> Tree:
    if isinstance(tree, Mapping):
        return {name: _slots(below) for name, below in tree.items()}
    return slot_with(np.asarray(tree))


class Raw:
    """Bytes of a pickle that stand where a value would."""

    def __init__(self, code: bytes) -> None:
        self.code = code


def pickled(value: Any) -> bytes:
    """Protocol 2, with raw bytes where a test wants to say more than torch would."""
    match value:
        case Raw():
            return value.code
        case dict():
            items = b"".join(pickled(k) + pickled(v) for k, v in value.items())
            return b"}(" + items + b"u"
        case tuple():
            return b"(" + b"".join(map(pickled, value)) + b"t"
    return pickle.dumps(value, 2)[2:-1]


def tensor(
    *,
    key: str = "0",
    kind: str = "FloatStorage",
    count: int = 4,
    offset: int = 0,
    shape: tuple[int, ...] = (4,),
    stride: tuple[int, ...] = (1,),
) -> Raw:
    """A tensor of torch's, with whatever a test claims of it."""
    storage = Raw(f"ctorch\n{kind}\n".encode())
    address = pickled(("storage", storage, key, "cpu", count)) + b"Q"
    hooks = Raw(b"ccollections\nOrderedDict\n)R")
    arguments = pickled((Raw(address), offset, shape, stride, False, hooks))
    return Raw(b"ctorch._utils\n_rebuild_tensor_v2\n" + arguments + b"R")


def old_layout(value: bytes, storages: Mapping[str, tuple[int, bytes]]) -> bytes:
    """A file of torch before 1.6: `storages` are counts and bytes by key."""
    start = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2)
    start += pickle.dumps({"protocol_version": 1001, "little_endian": True}, 2)
    numbers = b"".join(n.to_bytes(8, "little") + raw for n, raw in storages.values())
    return start + b"\x80\x02" + value + b"." + pickle.dumps(list(storages), 2) + numbers


def bits(array: Array) -> tuple[str, tuple[int, ...], bytes]:
    """What two arrays share only if they are bit-same."""
    return array.dtype.name, array.shape, np.ascontiguousarray(array).tobytes()
