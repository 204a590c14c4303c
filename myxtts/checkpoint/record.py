"""checkpoint.json: what a checkpoint is, and the sum of every file beside it.

It is written last and carries its own sum, so a folder that has a right one was written whole.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import myxtts
from myxtts.checkpoint.errors import BrokenError, CheckpointError
from myxtts.checkpoint.tensor_file import FileSum, fill, reading

RECORD = "checkpoint.json"
FORMAT = 1
LARGEST = 16 << 20  # Bytes.
TENSORS = ".safetensors"
_FILE = re.compile(r"[a-z][a-z0-9_]{0,63}\.safetensors")
_SUM = "sha256"


@dataclass(frozen=True)
class Record:
    """What checkpoint.json says."""

    step: int
    serial: int
    """Counts the saves of one folder: a resumed run may come by the same step again."""
    saved_at: str
    """When, as 2026-11-19T21:00:00.000000+00:00."""
    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    """None stands for what was not finite."""
    versions: Mapping[str, str]
    files: Mapping[str, FileSum]
    made_from: Mapping[str, Any] | None = None
    """In a slim copy: the step and the files of the checkpoint it was taken from."""


def record_bytes(record: Record) -> bytes:
    """The file's content."""
    body = {"format": FORMAT} | asdict(record)
    return json.dumps(body | {_SUM: _own_sum(body)}, indent=1, allow_nan=False).encode() + b"\n"


def read_record(folder: Path) -> Record:
    """Reads and checks checkpoint.json; the files beside it are not looked at."""
    file = folder / RECORD
    with reading(file) as handle:
        size = file.stat().st_size
        if size > LARGEST:
            raise BrokenError(file, f"has {size} bytes; no checkpoint's has")
        raw = bytearray(size)
        fill(handle, memoryview(raw), file)
    try:
        body = json.loads(raw.decode(), parse_constant=_refuse)
        found = body.pop(_SUM)
        same = found == _own_sum(body)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise BrokenError(file, "is not the JSON that was written") from None
    if not same:
        raise BrokenError(file, "is not as it was written: its sum is another")
    return _record(file, body)


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Metrics as JSON can hold them."""
    return {name: float(m) if math.isfinite(m) else None for name, m in metrics.items()}


@cache
def present_versions() -> Mapping[str, str]:
    """What the numbers of a run depend on besides its settings."""
    packages = {"tensorflow": ("tensorflow", "tensorflow-cpu"), "keras": ("keras",)}
    packages |= {"numpy": ("numpy",)}
    found = {"myxtts": myxtts.__version__, "python": python_version()}
    for name, distributions in packages.items():
        for distribution in distributions:
            try:
                found.setdefault(name, version(distribution))
            except PackageNotFoundError:
                continue
    return found


def _record(file: Path, body: dict[str, Any]) -> Record:
    if body.pop("format", None) != FORMAT:
        raise CheckpointError(
            f"{file} is of another format than {FORMAT}, the one that this version reads",
            "use the version of MyXTTS that wrote it",
        )
    try:
        files = {name: FileSum(**entry) for name, entry in body.pop("files").items()}
        record = Record(**body, files=files)
        good = all(_FILE.fullmatch(name) for name in files)
        good = good and all(type(n) is int and n >= 0 for n in (record.step, record.serial))
        mappings = (record.config, record.facts, record.metrics, record.versions)
        good = good and all(isinstance(mapping, dict) for mapping in mappings)
        good = good and all(m is None or type(m) in (int, float) for m in record.metrics.values())
        good = good and isinstance(record.saved_at, str)
    except (TypeError, LookupError, AttributeError):
        good = False
    if not good:
        raise BrokenError(file, "does not describe a checkpoint")
    return record


def _own_sum(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
