"""Made-up recordings for the tests of data: bursts of tone between two silences."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from myxtts.config import CourtConfig, DataConfig
from myxtts.manifest import Manifest
from myxtts.prepare import Order, Vocabulary, prepare

RATE = 22050
Floats = np.ndarray[Any, np.dtype[np.float32]]


def speech(seconds: float = 1.0, seed: int = 0, rate: int = RATE) -> Floats:
    """Syllables of a tone of its own, with 100 ms of near-silence at both ends."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * rate)) / rate
    syllables = np.clip(np.sin(2 * np.pi * 4 * (time - 0.1)), 0, 1)
    syllables[(time < 0.1) | (time > seconds - 0.1)] = 0
    tone = 0.4 * np.sin(2 * np.pi * (150 + 10 * (seed % 40)) * time) * syllables
    return np.asarray(tone + rng.normal(0, 1e-3, len(time)), np.float32)


def save(path: Path, sound: Floats, rate: int = RATE, subtype: str | None = "PCM_16") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, sound, rate, subtype=subtype)


def ljspeech(root: Path, count: int, seconds: float = 0.6) -> Path:
    """An LJSpeech folder of `count` good clips."""
    lines = []
    for number in range(count):
        save(root / "wavs" / f"c{number:04d}.wav", speech(seconds, number))
        lines.append(f"c{number:04d}|Sentence {number}.|Sentence {number}.\n")
    (root / "metadata.csv").write_text("".join(lines))
    return root


def prepared(
    data: Path,
    out: Path | None = None,
    *,
    workers: int = 1,
    vocabulary: Vocabulary | None = None,
    check: bool = False,
    said: list[str] | None = None,
    court: CourtConfig | None = None,
    **settings: Any,
) -> Manifest:
    """Prepares into a folder beside the data, in English where nothing else is said."""
    given = {"language": "en", "shard_mb": 1, **settings}
    order = Order(
        data,
        out or beside(data),
        DataConfig(court=court or CourtConfig(), **given),
        workers,
        vocabulary,
        check,
    )
    return prepare(order, (said if said is not None else []).append)


def beside(data: Path) -> Path:
    return data.with_name(f"{data.name}-prepared")


def refused(out: Path) -> list[dict[str, str]]:
    with (out / "refused.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rules(out: Path) -> Counter[str]:
    return Counter(row["rule"] for row in refused(out))


def contents(out: Path) -> dict[str, bytes]:
    """Every file of a prepared folder."""
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}
