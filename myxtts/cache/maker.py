"""What codes depend on besides the clip: each codec, with its front end, has its own folder."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from myxtts.audio import DVAE, SAMPLES_PER_CODE

Say = Callable[[str], None]

ARITHMETIC = 1
"""Rises when the same settings would give other codes: mel, padding, the choice of a code."""
PREFIX = "codes-"


def maker_of(codec: Path, settings: Mapping[str, Any], mel_stats_M: NDArray[np.float32]) -> str:
    """A sum over the codec's weights and settings, the mels' levels and the mel's front end."""
    about = {
        "arithmetic": ARITHMETIC,
        "front": repr(DVAE),
        "samples_per_code": SAMPLES_PER_CODE,
        "codec": dict(settings),
    }
    with codec.open("rb") as handle:
        weights = hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).digest()
    whole = hashlib.blake2b(weights, digest_size=8)
    whole.update(mel_stats_M.astype("<f4").tobytes())
    whole.update(json.dumps(about, sort_keys=True).encode())
    return whole.hexdigest()


def cache_folder(root: Path, maker: str, say: Say) -> Path:
    """Where this maker's codes are; says so if the folder has only those of others."""
    folder = root / f"{PREFIX}{maker}"
    if not folder.is_dir() and any(root.glob(f"{PREFIX}*")):
        say(
            f"cache: {root} has codes of another codec, or of other mels; they are left alone, "
            "and each clip is encoded again"
        )
    return folder
