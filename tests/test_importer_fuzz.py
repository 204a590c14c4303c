"""Damaged downloads: refused, or read as they were; never a crash, never another number."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from downloads import Arrays, bits, download, ignore, old_layout, pickled, silent, tensor, write_pth
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from myxtts.errors import UserError
from myxtts.importer.known import RefusedError
from myxtts.importer.pickles import read_pickle
from myxtts.importer.reading import import_model
from myxtts.importer.safetensors_file import write_tensors
from myxtts.importer.slots import slot_with
from myxtts.importer.state import open_codec

FLIPS = pytest.mark.parametrize(
    "flips", [400, pytest.param(20_000, marks=[pytest.mark.campaign, pytest.mark.timeout(900)])]
)
STEP = 5  # Bytes between two lengths at which a file is cut off.
ARRAYS: Arrays = {
    "encoder.0.0.weight": np.arange(12, dtype=np.float32).reshape(2, 3, 2),
    "codebook.embed": np.arange(4, dtype=np.float16),
    "steps": np.array(7, np.int64),
}


def as_zip(file: Path) -> Path:
    write_pth(file.with_suffix(".pth"), ARRAYS)
    return file.with_suffix(".pth")


def as_old(file: Path) -> Path:
    kinds = {"float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage"}
    entries = {
        name: tensor(
            key=name,
            kind=kinds[a.dtype.name],
            count=a.size,
            shape=a.shape,
            stride=tuple(n // a.itemsize for n in a.strides),
        )
        for name, a in ARRAYS.items()
    }
    storages = {name: (a.size, a.tobytes()) for name, a in ARRAYS.items()}
    file.with_suffix(".pth").write_bytes(old_layout(pickled(entries), storages))
    return file.with_suffix(".pth")


def as_safetensors(file: Path) -> Path:
    slots = {name: slot_with(array) for name, array in ARRAYS.items()}
    write_tensors(file.with_suffix(".safetensors"), slots, ignore)
    return file.with_suffix(".safetensors")


FORMS = pytest.mark.parametrize("form", [as_zip, as_old, as_safetensors])
Form = Callable[[Path], Path]


def read(folder: Path) -> dict[str, Any]:
    with open_codec(folder) as state:
        return {name: bits(state.weights.read(name)) for name in state.weights.tensors}


def outcomes(file: Path, contents: Iterator[bytes]) -> Iterator[dict[str, Any] | None]:
    """What each content is read as; None where it is refused."""
    for content in contents:
        file.write_bytes(content)
        try:
            yield read(file.parent)
        except RefusedError:
            yield None


def flipped(whole: bytes, count: int) -> Iterator[bytes]:
    """One bit of one byte changed, at places drawn from a fixed seed."""
    draw = random.Random(1)  # noqa: S311 - no secret hangs on it.
    for _ in range(count):
        place, bit = draw.randrange(len(whole)), 1 << draw.randrange(8)
        yield whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :]


@FORMS
def test_a_file_cut_off_anywhere_is_refused(form: Form, tmp_path: Path) -> None:
    file = form(tmp_path / "dvae")
    whole, expected = file.read_bytes(), {name: bits(a) for name, a in ARRAYS.items()}
    assert read(tmp_path) == expected
    cut = (whole[:length] for length in range(0, len(whole), STEP))
    assert [found for found in outcomes(file, cut) if found is not None] == []


@FLIPS
def test_a_flipped_bit_in_a_zip_is_refused_or_changes_nothing(flips: int, tmp_path: Path) -> None:
    file = as_zip(tmp_path / "dvae")
    whole, expected = file.read_bytes(), {name: bits(a) for name, a in ARRAYS.items()}
    found = list(outcomes(file, flipped(whole, flips)))
    assert [each for each in found if each not in (None, expected)] == []
    assert found.count(None) > flips // 2


@FLIPS
@pytest.mark.parametrize("form", [as_old, as_safetensors])
def test_a_flipped_bit_where_there_are_no_checksums_is_never_a_crash(
    form: Form, flips: int, tmp_path: Path
) -> None:
    file = form(tmp_path / "dvae")
    found = list(outcomes(file, flipped(file.read_bytes(), flips)))
    assert len(found) == flips
    assert None in found


def ends_within(code: bytes) -> bool:
    """Whether the pickle is refused, or read without going past its end."""
    try:
        return 0 < read_pickle(code)[1] <= len(code)
    except RefusedError as error:
        return bool(error.problem)


@given(st.binary(max_size=60))
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_as_a_pickle_are_a_value_or_refused(code: bytes) -> None:
    assert ends_within(code + b".")


BYTES = [bytes([code]) for code in b"}])(taesubRQN\x85\x86\x87\x90\x94\x93\x81\x8f"]
NAMES = (
    "torch._utils\n_rebuild_tensor_v2",
    "torch\nFloatStorage",
    "collections\nOrderedDict",
    "TTS.a\nB",
)
PHRASES = [b"q\0", b"h\0", b"K\x02", b"X\1\0\0\0a", b"X\7\0\0\0storage", tensor().code]
WORDS = st.sampled_from([*BYTES, *PHRASES, *(f"c{name}\n".encode() for name in NAMES)])


@given(st.lists(WORDS, max_size=40))
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_program_of_known_instructions_is_a_value_or_refused(words: list[bytes]) -> None:
    assert ends_within(b"".join(words) + b".")


def import_all(path: Path, name: str, contents: Iterator[bytes]) -> Iterator[str]:
    """What is said of a download that has one file of these contents; nothing where it is fine."""
    for number, content in enumerate(contents):
        (path / name).write_bytes(content)
        out = path.parent / f"model {number}"
        try:
            import_model(path, out, silent)
            yield ""
        except UserError as error:
            yield error.problem if not out.exists() else f"left {out}"


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "model.pth", "speakers_xtts.pth"])
def test_a_download_with_a_flipped_bit_is_imported_or_refused(name: str, tmp_path: Path) -> None:
    path = download().write(tmp_path / "download")
    found = list(import_all(path, name, flipped((path / name).read_bytes(), 5)))
    said = [problem for problem in found if problem]
    assert all(str(path) in problem or "config.json" in problem for problem in said)
    # The folder of the download itself, and one model for each time that nothing was said.
    assert len(list(tmp_path.iterdir())) == 1 + len(found) - len(said)
