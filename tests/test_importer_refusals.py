"""What `myxtts import` refuses: by name, with nothing run and nothing written."""

import io
import json
import os
import pickle
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from downloads import (
    Arrays,
    Download,
    Raw,
    download,
    old_layout,
    pickled,
    silent,
    tensor,
    vocabulary,
)

from myxtts.errors import UserError
from myxtts.importer.known import RefusedError
from myxtts.importer.pickles import read_pickle
from myxtts.importer.reading import import_model
from myxtts.importer.sizes import read_sizes
from myxtts.importer.source import open_source
from myxtts.importer.state import open_codec
from myxtts.importer.torch_file import open_torch
from myxtts.importer.writing import export_model
from myxtts.model_folder.new_folder import new_folder

FOUR = np.arange(4, dtype=np.float32).tobytes()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return held.getvalue()


def torch_zip(value: Any, numbers: bytes = FOUR) -> bytes:
    code = b"\x80\x02" + pickled(value) + b"."
    return zipped({"archive/data.pkl": code, "archive/data/0": numbers})


def refusal(content: bytes, folder: Path) -> str:
    """What is said of a dvae.pth of this content; and that nothing but it is there afterwards."""
    (folder / "dvae.pth").write_bytes(content)
    with pytest.raises(RefusedError) as told:
        read_codec(folder)
    assert [file.name for file in folder.iterdir()] == ["dvae.pth"]
    assert told.value.problem.startswith(f"{folder / 'dvae.pth'}: ")
    assert told.value.remedy
    return told.value.problem


def read_codec(folder: Path) -> None:
    """Opens it and reads every tensor."""
    with open_codec(folder) as state:
        for name in state.weights.tensors:
            state.weights.read(name)


class Evil:
    """Its pickle calls a function when it is loaded."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call[0], self.call[1:]


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("layout", ["zip", "old", "bare"])
def test_a_pickle_that_would_run_code_is_refused_by_its_name(
    protocol: int, layout: str, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    evil = pickle.dumps({"weight": Evil(os.system, f"touch '{mark}'")}, protocol)
    pickle.loads(evil)  # noqa: S301 - it shows that the danger is a real one.
    assert mark.exists()
    mark.unlink()
    old = old_layout(evil[2:-1], {})
    files = {"zip": zipped({"archive/data.pkl": evil}), "old": old, "bare": evil}
    said = refusal(files[layout], tmp_path)
    assert ("no file of torch.save" if layout == "bare" else "'posix.system'") in said
    assert not mark.exists()


NAMES = """
    builtins.eval builtins.exec builtins.getattr builtins.__import__ __builtin__.eval os.system
    subprocess.Popen importlib.import_module operator.attrgetter functools.partial shutil.rmtree
    torch.load torch.hub.load torch.jit.load torch.nn.modules.linear.Linear torch.storage.whatever
    torch._utils._import_dotted_name torch.utils.cpp_extension.load numpy.load numpy.ndarray
    TTSx.thing coqpitevil.thing runpy.run_path
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_a_name_that_no_file_of_weights_needs_is_refused(name: str) -> None:
    module, _, leaf = name.rpartition(".")
    by_line = Raw(f"c{module}\n{leaf}\n".encode())
    by_stack = Raw(pickled(module) + pickled(leaf) + b"\x93")
    for way in (by_line, by_stack):
        with pytest.raises(RefusedError, match=f"asks for '{name}'"):
            read_pickle(pickled({"w": Raw(pickled(way) + b")R")}) + b".")


def test_a_class_of_the_reference_is_an_empty_object_whatever_it_says() -> None:
    before = set(sys.modules)
    code = b"cTTS.tts.models.xtts\nXttsArgs\n)\x81}X\x01\x00\x00\x00aK\x01sb"
    value, _ = read_pickle(pickled({"config": Raw(code), "model": {}}) + b".")
    assert set(sys.modules) == before
    assert (vars(value["config"]), value["model"]) == ({}, {})


INSTRUCTIONS = {
    "INST": b"(ios\nsystem\n",
    "OBJ": b"(cTTS\nX\no",
    "NEWOBJ_EX": b"cTTS\nX\n)}\x92",
    "EXT1": b"\x82\x01",
    "PERSID": b"P0\n",
    "LONG4": b"\x8b\xff\xff\xff\x7f",
    "BYTEARRAY8": b"\x96\xff\xff\xff\xff\xff\xff\xff\x7f",
    "BINUNICODE8": b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
    "STRING": b"S'a'\n",
    "FROZENSET": b"(\x91",
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_an_instruction_that_torch_never_writes_is_refused(name: str) -> None:
    with pytest.raises(RefusedError, match=r"has the instruction b"):
        read_pickle(b"\x80\x02" + INSTRUCTIONS[name] + b".")


BROKEN = {
    "takes from an empty stack": b"R",
    "looks at an empty stack": b"q\x00",
    "closes what it never opened": b"t",
    "recalls what it never stored": b"h\x07",
    "calls what is no function": b"X\x01\x00\x00\x00a)R",
    "in a way that torch does not": b"ctorch._utils\n_rebuild_tensor_v2\n)R",
    "points at a storage in a way": b"NQ",
    "keys that are no names": b"}()K\x01u",
    "two entries of the name": b"}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00aK\x02u",
    "sets items of what is no dict": b"](K\x01K\x02u",
    "appends to what is no list": b"}K\x01a",
    "sets the state of what is no object": b"]}b",
    "breaks off": b"X\xff\xff\xff\x7fabc",
    "breaks off in a name": b"c" + b"a" * 2000,
    "not UTF-8": b"X\x01\x00\x00\x00\xff",
    "an integer of 255 bytes": b"\x8a\xff" + b"\xff" * 255,
    "nests containers more than": b"]" * 40 + b"a" * 39,
    "piles up more than": b"(" * 70,
    "builds a name out of what is no text": b"K\x01K\x02\x93",
    "is of version 9": b"\x80\x09",
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_pickle_that_no_torch_wrote_is_refused_with_its_fault(said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        read_pickle(BROKEN[said] + b".")


BOMBS = {
    "piles up more than": b"K\x00" * 70_000,
    "more than 1048576 instructions": b"]" + b"K\x00a" * 600_000,
}


@pytest.mark.parametrize("said", BOMBS)
def test_a_pickle_without_end_is_stopped(said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        read_pickle(BOMBS[said] + b".")


def test_a_list_whose_halves_are_one_and_the_same_takes_no_time() -> None:
    # A million million paths lead through thirty such lists, were each one walked.
    levels = b"".join(b"](h%ch%ceq%c" % (n, n, n + 1) for n in range(30))
    value, _ = read_pickle(b"]q\x00" + levels + b".")
    assert value[0] is value[1]


TENSORS: dict[str, tuple[dict[str, Any], str]] = {
    "negative shape": ({"shape": (-4,)}, "an impossible shape: [-4]"),
    "negative stride": ({"stride": (-1,)}, "an impossible stride: [-1]"),
    "negative offset": ({"offset": -1}, "without a storage or a place in it"),
    "overflowing shape": ({"shape": (2**63,)}, "an impossible shape"),
    "overflowing product": (
        {"shape": (2**32, 2**32), "stride": (0, 0)},
        "does not fit its storage",
    ),
    "overflowing stride": ({"shape": (2,), "stride": (2**61,)}, "does not fit its storage"),
    "past the end": ({"offset": 1}, "does not fit its storage of 4 numbers"),
    "repeated numbers": ({"shape": (10**9,), "stride": (0,)}, "does not fit its storage"),
    "nine axes": ({"shape": (1,) * 9, "stride": (1,) * 9}, "an impossible shape"),
    "shape of floats": ({"shape": (4.0,)}, "an impossible shape: [float]"),
    "shape of truths": ({"shape": (True,)}, "an impossible shape: [bool]"),
    "shape of texts": ({"shape": "4"}, "an impossible shape: str"),
    "two strides": ({"stride": (1, 1)}, "a tensor of 1 axes has 2 strides"),
    "large storage": ({"count": 10**15}, "has 16 bytes, and 1000000000000000 numbers"),
    "another kind": ({"kind": "DoubleStorage"}, "has 16 bytes, and 4 numbers of float64 are 32"),
    "negative storage": ({"count": -4}, "points at a storage in a way"),
    "no numbers": ({"key": "7"}, "the numbers of w are not in the file"),
    "escaping key": ({"key": "../../etc/passwd"}, "the numbers of w are not in the file"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_an_impossible_tensor_is_refused(case: str, tmp_path: Path) -> None:
    claims, said = TENSORS[case]
    assert said in refusal(torch_zip({"w": tensor(**claims)}), tmp_path)


@pytest.mark.parametrize(
    "name",
    ["../up", "/absolute", "archive/../../up", "archive\\..\\up", "C:/up", "archive//up", "a\n"],
)
def test_a_member_outside_the_files_own_folder_is_refused(name: str, tmp_path: Path) -> None:
    code = b"\x80\x02" + pickled({"w": tensor()}) + b"."
    members = {"archive/data.pkl": code, "archive/data/0": FOUR, name: b"x"}
    assert "would lie outside" in refusal(zipped(members), tmp_path)


def test_a_zip_bomb_is_refused_unopened(tmp_path: Path) -> None:
    code = b"\x80\x02" + pickled({"w": tensor(count=10**7, shape=(10**7,))}) + b"."
    members = {"archive/data.pkl": code, "archive/data/0": bytes(4 * 10**7)}
    bomb = zipped(members, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    assert "is compressed" in refusal(bomb, tmp_path)


def overlapping() -> bytes:
    """A member that lies inside another one, with a header of its own."""
    alone = zipped({"archive/data/0": FOUR})
    inner, entry = alone[: alone.find(b"PK\1\2")], alone[alone.find(b"PK\1\2") : -22]
    code = b"\x80\x02" + pickled({"w": tensor()}) + b"."
    whole = zipped({"archive/data.pkl": code, "archive/data/1": inner})
    entry = entry[:42] + struct.pack("<L", whole.find(inner)) + entry[46:]
    start, old_length = struct.unpack("<LL", whole[-6:-2] + whole[-10:-6])
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 3, 3, old_length + len(entry), start, 0)
    return whole[:-22] + entry + end


def changed(at: int, form: str, value: int) -> bytes:
    """A field of the last member's entry in the table, overwritten."""
    whole = bytearray(torch_zip({"w": tensor()}))
    struct.pack_into(form, whole, whole.rfind(b"PK\1\2") + at, value)
    return bytes(whole)


def ended(at: int, form: str, value: int) -> bytes:
    """A field of the end of the zip file, overwritten."""
    whole = bytearray(torch_zip({"w": tensor()}))
    struct.pack_into(form, whole, len(whole) - 22 + at, value)
    return bytes(whole)


ZIPS: dict[str, tuple[Callable[[], bytes], str]] = {
    "members in one place": (overlapping, "lie in the same place"),
    "length of 4 GB": (lambda: changed(24, "<L", 2**32 - 2), "has two lengths"),
    "encrypted": (lambda: changed(8, "<H", 1), "is encrypted"),
    "header elsewhere": (lambda: changed(42, "<L", 3), "is not where the table says"),
    "header past the end": (lambda: changed(42, "<L", 2**31), "before what it announces"),
    "a million members": (lambda: ended(10, "<H", 60000), "one part of a zip file in several"),
    "table past the end": (lambda: ended(16, "<L", 2**31), "announces a table"),
    "table of 4 GB": (lambda: ended(12, "<L", 2**32 - 2), "announces a table"),
    "no end": (lambda: torch_zip({"w": tensor()})[:-30], "perhaps the download broke off"),
    "two pickles": (
        lambda: zipped({"a/data.pkl": b"N.", "b/data.pkl": b"N."}),
        "2 members data.pkl",
    ),
    "a web page": (lambda: b"<html>404</html>", "no file of torch.save"),
    "nothing": (lambda: b"", "no file of torch.save"),
    "strange byte order": (
        lambda: zipped({"a/data.pkl": b"N.", "a/byteorder": b"middle"}),
        "neither little nor big",
    ),
    "more behind the pickle": (
        lambda: zipped({"a/data.pkl": b"N.N."}),
        "behind the end of its pickle",
    ),
}


@pytest.mark.parametrize("case", ZIPS)
def test_a_zip_that_torch_never_wrote_is_refused(case: str, tmp_path: Path) -> None:
    make, said = ZIPS[case]
    assert said in refusal(make(), tmp_path)


@pytest.mark.parametrize("name", ["", 5, None, "a" * 501, "\x1b[2Jw", "a\nb"])
def test_a_tensor_without_a_decent_name_is_refused(name: Any, tmp_path: Path) -> None:
    assert "whose name is none" in refusal(torch_zip({name: tensor()}), tmp_path)


def test_changed_bytes_are_found_by_their_checksum(tmp_path: Path) -> None:
    whole = bytearray(torch_zip({"w": tensor()}))
    whole[whole.find(FOUR) + 5] ^= 1
    assert "the bytes of w are not those that were written" in refusal(bytes(whole), tmp_path)


OLD: dict[str, tuple[bytes, str]] = {
    "breaks off": (old_layout(pickled({"w": tensor()}), {"0": (4, FOUR[:5])}), "breaks off in its"),
    "huge count": (old_layout(pickled({"w": tensor()}), {"0": (2**62, FOUR)}), "not the one its"),
    "negative": (old_layout(pickled({"w": tensor()}), {"0": (2**64 - 4, FOUR)}), "not the one its"),
    "unknown": (old_layout(pickled({"w": tensor()}), {"1": (4, FOUR)}), "not the one its"),
    "missing": (old_layout(pickled({"w": tensor()}), {}), "the numbers of w are not in the file"),
}


@pytest.mark.parametrize("case", OLD)
def test_a_damaged_file_of_the_old_layout_is_refused(case: str, tmp_path: Path) -> None:
    content, said = OLD[case]
    assert said in refusal(content, tmp_path)


def table(entries: Any, numbers: bytes = FOUR, length: int | None = None) -> bytes:
    head = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(head) if length is None else length) + head + numbers


ENTRY = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
TABLES: dict[str, tuple[bytes, str]] = {
    "table of 2 ** 63 bytes": (table({}, length=2**63), "it is no safetensors file"),
    "table past the end": (table({}, b"", 1000), "before what it announces"),
    "no JSON": (table(b"{oops}"), "no JSON with one entry a name"),
    "deep JSON": (table(b"[" * 100_000), "no JSON with one entry a name"),
    "a list": (table([1]), "no JSON object"),
    "a name twice": (table(b'{"w":1,"w":2}'), "no JSON with one entry a name"),
    "negative shape": (table({"w": {**ENTRY, "shape": [-4]}}), "does not describe a tensor"),
    "large shape": (table({"w": {**ENTRY, "shape": [2**61, 8]}}), "does not describe a tensor"),
    "wrong length": (table({"w": {**ENTRY, "shape": [5]}}), "does not describe a tensor"),
    "unknown kind": (table({"w": {**ENTRY, "dtype": "F4"}}), "does not describe a tensor"),
    "past the end": (table({"w": ENTRY}, FOUR[:8]), "has 78 bytes, and its table describes 86"),
    "overlap": (table({"w": ENTRY, "v": ENTRY}), "overlap or leave a gap"),
    "a gap": (table({"w": {**ENTRY, "data_offsets": [4, 20]}}, FOUR + b"1234"), "leave a gap"),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_damaged_safetensors_file_is_refused(case: str, tmp_path: Path) -> None:
    content, said = TABLES[case]
    (tmp_path / "dvae.safetensors").write_bytes(content)
    with pytest.raises(RefusedError) as told, open_codec(tmp_path):
        pass
    assert said in told.value.problem


def refused(given: Download, tmp_path: Path) -> UserError:
    """The error of an import that leaves nothing behind."""
    path = given.write(tmp_path / "download")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError) as told:
        import_model(path, tmp_path / "new" / "model", silent)
    assert sorted(tmp_path.rglob("*")) == before
    return told.value


MISSING = "gpt.gpt.h.1.attn.c_attn.weight"
UNEXPECTED = "gpt.third_embedding.weight"
MISSHAPEN = "hifigan_decoder.waveform_decoder.resblocks.4.convs2.1.bias"
INTEGER = "gpt.final_norm.bias"


def spoil(arrays: Arrays) -> None:
    arrays.pop(MISSING)
    arrays[UNEXPECTED] = np.ones((2, 2), np.float32)
    arrays[MISSHAPEN] = np.ones(5, np.float32)
    arrays[INTEGER] = arrays[INTEGER].astype(np.int32)


def test_missing_unexpected_and_misshapen_tensors_are_all_told(tmp_path: Path) -> None:
    given = download()
    spoil(given.model)
    said = refused(given, tmp_path).problem
    assert "model.pth does not fit: " in said
    for words in (
        f"missing {MISSING}",
        f"unexpected {UNEXPECTED}",
        f"{MISSHAPEN} is [5], it should be [16]",
        f"{INTEGER} is int32, weights are float32",
    ):
        assert words in said


def test_a_codec_and_a_voice_that_do_not_fit_are_told(tmp_path: Path) -> None:
    given = download()
    assert given.codec is not None
    given.codec["encoder.9.weight"] = given.codec.pop("encoder.5.weight")
    said = refused(given, tmp_path / "codec").problem
    assert "missing encoder.5.weight; unexpected encoder.9.weight" in said
    given = download()
    assert given.voices is not None
    given.voices["Ana Florence"].pop("speaker_embedding")
    said = refused(given, tmp_path / "voices").problem
    assert "missing Ana Florence.speaker_embedding" in said


def test_only_the_first_of_many_faults_are_told(tmp_path: Path) -> None:
    given = download()
    given.model = {n: a for n, a in given.model.items() if not n.endswith(".bias")}
    said = refused(given, tmp_path).problem
    assert said.count("missing") == 20
    assert "; and " in said


@pytest.mark.parametrize("shape", [(1, 2**31 - 1), (0, 128), (64,), ()])
def test_a_shape_that_no_network_has_is_refused_before_any_size_is_worked_out(
    shape: tuple[int, ...],
) -> None:
    with pytest.raises(UserError, match=r"gpt\.text_embedding\.weight is .* no shape of XTTS-v2"):
        read_sizes({"gpt.text_embedding.weight": shape}, None, {}, vocabulary())


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "no heads": ({"gpt_n_heads": None}, "no whole number at model_args.gpt_n_heads"),
    "heads that do not divide": ({"gpt_n_heads": 7}, "does not divide into 7 heads"),
    "negative heads": ({"gpt_n_heads": -4}, "gpt.heads"),
    "other layers": ({"gpt_layers": 30}, "config.json says gpt_layers 30, the weights have 3"),
    "XTTS-v1": ({"gpt_use_perceiver_resampler": False}, "gpt_use_perceiver_resampler False"),
    "another rate": ({"output_sample_rate": 44100}, "output_sample_rate 44100"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_another_model_are_refused(case: str, tmp_path: Path) -> None:
    changes, said = SETTINGS[case]
    given = download()
    given.config["model_args"] |= changes
    assert said in refused(given, tmp_path).problem


def test_settings_that_count_otherwise_are_told_and_the_weights_believed(tmp_path: Path) -> None:
    given = download()
    given.config["model_args"]["gpt_number_text_tokens"] = 6681
    lines: list[str] = []
    made = import_model(given.write(tmp_path / "download"), tmp_path / "model", lines.append)
    assert "config.json says gpt_number_text_tokens 6681, the weights have 64" in lines
    assert made.model.gpt.text_tokens == 64


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, b"1" * 9000])
def test_a_config_that_is_none_is_refused(content: bytes, tmp_path: Path) -> None:
    path = download().write(tmp_path / "download")
    (path / "config.json").write_bytes(content)
    with pytest.raises(UserError, match=r"config\.json (is no JSON|has no section model_args)"):
        import_model(path, tmp_path / "model", silent)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["model.pth", "config.json", "vocab.json"])
def test_a_needed_file_that_is_absent_is_named(name: str, tmp_path: Path) -> None:
    path = download().write(tmp_path / "download")
    (path / name).unlink()
    with pytest.raises(UserError, match=name.replace(".", r"\.")):
        import_model(path, tmp_path / "model", silent)
    assert not (tmp_path / "model").exists()


def test_a_pipe_in_a_files_place_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.pth")
    with pytest.raises(UserError, match="is no file"), open_source(tmp_path / "model.pth"):
        pass


def test_two_forms_of_one_file_are_refused(tmp_path: Path) -> None:
    path = download().write(tmp_path / "download")
    shutil.copyfile(path / "dvae.pth", path / "dvae.safetensors")
    with pytest.raises(UserError, match=r"has both dvae\.pth and dvae\.safetensors"):
        import_model(path, tmp_path / "model", silent)


@pytest.mark.parametrize("there", ["full", "file", "link"])
def test_nothing_that_is_there_is_written_over(there: str, tmp_path: Path) -> None:
    path, out = download().write(tmp_path / "download"), tmp_path / "model"
    if there == "full":
        out.mkdir()
        (out / "mine").write_text("mine")
    elif there == "file":
        out.write_text("mine")
    else:
        out.symlink_to(tmp_path / "download")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match="is there already"):
        import_model(path, out, silent)
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        import_model(path, path / "model.pth" / "model", silent)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_folder_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    made = import_model(download().write(tmp_path / "download"), tmp_path / "model", silent)
    assert made.weights("gpt").is_file()


def test_a_disk_without_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = download().write(tmp_path / "download")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 10_000_000))
    with pytest.raises(UserError, match=r"needs 0\.01 GB, and 0\.01 GB are free"):
        import_model(path, tmp_path / "model", silent)
    assert [file.name for file in tmp_path.iterdir()] == ["download"]


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any, **_more: Any) -> str:
        raise PermissionError(13, "Permission denied")  # Root may write everywhere.

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(UserError, match="cannot be written: Permission denied"):
        import_model(download().write(tmp_path / "download"), tmp_path / "model", silent)


@pytest.mark.parametrize("words", ["import download --out model", "export model --out back --pth"])
def test_a_disk_that_fills_up_leaves_nothing_behind(words: str, tmp_path: Path) -> None:
    path = download().write(tmp_path / "download")
    if words.startswith("export"):
        import_model(path, tmp_path / "model", silent)
    before = sorted(tmp_path.rglob("*"))
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from myxtts.cli import main; sys.exit(main())",
            *words.split(),
        ],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        # A file may not grow beyond a megabyte: the write fails as on a full disk.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False), ran.stderr
    assert "cannot be written: File too large" in ran.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_stop_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    def stop() -> None:
        with new_folder(tmp_path / "a" / "b", 10) as folder:
            (folder / "half").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert list(tmp_path.iterdir()) == []


def test_an_export_of_what_is_no_models_folder_is_refused(tmp_path: Path) -> None:
    import_model(download().write(tmp_path / "download"), tmp_path / "model", silent)
    (tmp_path / "model" / "vocoder.safetensors").unlink()
    with pytest.raises(UserError, match="has no vocoder"):
        export_model(tmp_path / "model", tmp_path / "back", silent)
    with pytest.raises(UserError, match=r"is no model's folder: it has no config\.yaml"):
        export_model(tmp_path / "download", tmp_path / "back", silent)
    assert not (tmp_path / "back").exists()


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "dvae.pth"
    file.write_bytes(torch_zip({"w": tensor()}))
    with open_codec(tmp_path) as state:
        os.truncate(file, 100)
        with pytest.raises(RefusedError, match="broke off at byte"):
            state.weights.read("w")


def test_the_object_is_read_where_torch_wrote_more_than_weights(tmp_path: Path) -> None:
    (tmp_path / "x.pth").write_bytes(torch_zip({"w": tensor(), "step": 3, "notes": ("a", None)}))
    with open_torch(tmp_path / "x.pth") as (value, _weights):
        assert (value["step"], value["notes"]) == (3, ("a", None))
