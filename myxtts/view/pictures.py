"""Mels as pictures and sound as WAV, in bytes, with NumPy alone.

Legend: T frames, M mels, H and W height and width in pixels, C red, green and blue, S samples.
"""

import io
import struct
import zlib

import numpy as np
import soundfile
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Pixels = NDArray[np.uint8]

# From quiet to loud: as bright in grey as they are loud, and told apart by the colour-blind.
ANCHORS_C = np.array(
    [(10, 10, 40), (70, 30, 120), (170, 50, 110), (240, 120, 60), (255, 240, 170)], np.float64
)
LEVELS = 256
COLOURS = np.stack(
    [
        np.interp(np.linspace(0, len(ANCHORS_C) - 1, LEVELS), range(len(ANCHORS_C)), anchors)
        for anchors in ANCHORS_C.T
    ],
    axis=-1,
).astype(np.uint8)
"""The colour of each level."""
LOUDEST_SHARE, QUIETEST_SHARE = 0.995, 0.005
"""Quantiles between which colours lie: one stray value would leave all others in one colour."""
PIXELS_A_MEL = 2
GAP = 4
"""White rows between the real mel and the generated one."""
PNG_START = b"\x89PNG\r\n\x1a\n"


def mel_pair(real_TM: Floats, made_TM: Floats) -> Pixels:
    """The real mel above the generated one, low tones below, in one scale of colours.

    They may differ in length: what one has less is white.
    """
    both = np.concatenate([real_TM.ravel(), made_TM.ravel()]).astype(np.float64)
    known = both[np.isfinite(both)]
    scale = np.quantile(known, [QUIETEST_SHARE, LOUDEST_SHARE]) if known.size else np.zeros(2)
    upper, lower = (_coloured(mel_TM, scale) for mel_TM in (real_TM, made_TM))
    width = max(upper.shape[1], lower.shape[1])
    gap = np.full((GAP, width, 3), 255, np.uint8)
    return np.concatenate([_widened(upper, width), gap, _widened(lower, width)])


def _coloured(mel_TM: Floats, scale: NDArray[np.float64]) -> Pixels:
    low, high = scale
    # What is no number shows as silence here, and as an alarm elsewhere.
    finite_TM = np.nan_to_num(mel_TM.astype(np.float64), nan=low, posinf=high, neginf=low)
    level_HW = np.clip((finite_TM - low) / max(high - low, 1e-9), 0, 1).T[::-1]
    picture_HWC = COLOURS[(level_HW * (LEVELS - 1)).astype(np.uint8)]
    return np.repeat(picture_HWC, PIXELS_A_MEL, axis=0)


def _widened(picture_HWC: Pixels, width: int) -> Pixels:
    missing = width - picture_HWC.shape[1]
    return np.pad(picture_HWC, ((0, 0), (0, missing), (0, 0)), constant_values=255)


def png_bytes(picture_HWC: Pixels) -> bytes:
    """A picture as a PNG file."""
    height, width, _ = picture_HWC.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    # Every row begins with the number of its filter: none.
    rows = np.pad(picture_HWC.reshape(height, -1), ((0, 0), (1, 0)))
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b"")
    return PNG_START + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def wav_bytes(wave_S: Floats, rate: int) -> bytes:
    """Sound between -1 and 1 as a WAV file of 16 bits; what is louder is cut off."""
    file = io.BytesIO()
    limited_S = np.clip(np.nan_to_num(wave_S.astype(np.float32)), -1, 1)
    soundfile.write(file, limited_S, rate, format="WAV", subtype="PCM_16")
    return file.getvalue()
