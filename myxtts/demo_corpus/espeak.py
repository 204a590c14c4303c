"""Speaks with espeak-ng, in a process of its own: one JSON line in, one WAV file out.

The library is GPL-3. It is called through ctypes where a user has installed the extra `demo`;
nothing of it is part of this project, and no other process loads it.
"""

import ctypes
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

RATE = 22050
WORDS_PER_MINUTE = 130
TRIM_DB = -45.0
MARGIN = 512
"""Samples of near-silence kept on each side."""
PEAK = 0.7
FRAME = 256

SYMBOLS = 2  # ELF's SHT_SYMTAB.
SYNCHRONOUS, UTF8, SPEED = 2, 1, 1
"""espeak_ng's own numbers: AUDIO_OUTPUT_SYNCHRONOUS, espeakCHARS_UTF8, espeakRATE."""

Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class Voice:
    """The library, opened once; `speak` changes its voice when another is asked for."""

    def __init__(self) -> None:
        import espeakng_loader  # noqa: PLC0415

        self.library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.sounds: list[bytes] = []
        self.callback = Callback(self._hear)  # Kept: C holds no reference to it.
        data = str(espeakng_loader.get_data_path()).encode()
        if self.library.espeak_Initialize(SYNCHRONOUS, 0, data, 0) != RATE:
            sys.exit("espeak-ng did not start at 22050 samples a second")
        self.library.espeak_SetSynthCallback(self.callback)
        self.seed = _hidden(self.library, "espeak_srand")
        self.name = ""

    def _hear(self, samples: "ctypes._Pointer[ctypes.c_short]", count: int, _events: int) -> int:
        if count > 0 and samples:
            self.sounds.append(ctypes.string_at(samples, 2 * count))
        return 0

    def speak(self, name: str, text: str) -> np.ndarray:
        """One phrase, as the library gives it."""
        if name != self.name:
            if self.library.espeak_SetVoiceByName(name.encode()) != 0:
                sys.exit(f"espeak-ng has no voice {name}")
            self.library.espeak_SetParameter(SPEED, WORDS_PER_MINUTE, 0)
            self.name = name
        # Its random numbers begin with the time of day; with one seed a phrase sounds the same.
        self.seed(1)
        self.sounds.clear()
        raw = text.encode()
        self.library.espeak_Synth(raw, len(raw) + 1, 0, 0, 0, UTF8, None, None)
        self.library.espeak_Synchronize()
        return np.frombuffer(b"".join(self.sounds), "<i2").astype(np.float32) / 32768


def _hidden(library: ctypes.CDLL, name: str) -> Any:
    """A function that the library has and does not export, by its table of symbols (ELF64)."""
    raw = Path(library._name).read_bytes()
    (headers,) = struct.unpack_from("<Q", raw, 0x28)
    (count,) = struct.unpack_from("<H", raw, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", raw, headers + 64 * n) for n in range(count)]
    found = {}
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind == SYMBOLS:
            for place in range(offset, offset + size, 24):
                text, _, _, _, value = struct.unpack_from("<IBBHQ", raw, place)
                start = sections[link][4] + text
                found[raw[start : raw.index(b"\0", start)].decode()] = value
    known = "espeak_Initialize"
    if name not in found or known not in found:
        sys.exit(f"this espeak-ng has no {name}: its speech would differ from run to run")
    here = ctypes.cast(getattr(library, known), ctypes.c_void_p).value or 0
    return ctypes.CFUNCTYPE(None, ctypes.c_long)(here - found[known] + found[name])


def trimmed(sound: np.ndarray) -> np.ndarray:
    """The speech with a little silence on both sides, at one peak."""
    frames = sound[: len(sound) // FRAME * FRAME].reshape(-1, FRAME)
    levels = np.sqrt(np.square(frames).mean(axis=1))
    loud = np.flatnonzero(levels > levels.max() * 10 ** (TRIM_DB / 20))
    padded = np.pad(sound, MARGIN)
    speech = padded[loud[0] * FRAME : (loud[-1] + 1) * FRAME + 2 * MARGIN]
    result: np.ndarray = speech * np.float32(PEAK / np.abs(speech).max())
    return result


def main() -> None:
    """Reads jobs until there are no more; prints a line for each clip that is written."""
    voice = Voice()
    for line in sys.stdin:
        job = json.loads(line)
        sound = trimmed(voice.speak(job["voice"], job["text"]))
        soundfile.write(Path(job["path"]), sound, RATE, subtype="PCM_16")
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
