"""Five hundred broken files and lines: no crash, no hang, and each one is named."""

import os
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import soundfile
from clips import beside, prepared, refused, save, speech

from myxtts.config import CourtConfig

FILES = 340
LINES = 160
GOOD = 5

Break = Callable[[Path, bytes, random.Random], None]


def truncated(path: Path, good: bytes, rng: random.Random) -> None:
    path.write_bytes(good[: rng.randrange(0, 2000)])


def zeroed(path: Path, good: bytes, rng: random.Random) -> None:
    path.write_bytes(bytes(rng.choice([0, 1, 44, 4096])))


def noise(path: Path, good: bytes, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(rng.randrange(1, 5000)))


def noisy_header(path: Path, good: bytes, rng: random.Random) -> None:
    raw = bytearray(good[:3000])
    for _ in range(rng.randrange(1, 12)):
        raw[rng.randrange(4, 44)] = rng.randrange(256)
    path.write_bytes(raw)


def zero_hertz(path: Path, good: bytes, rng: random.Random) -> None:
    path.write_bytes(good[:24] + rng.choice([0, 1, 2**32 - 1]).to_bytes(4, "little") + good[28:])


def one_sample(path: Path, good: bytes, rng: random.Random) -> None:
    soundfile.write(path, speech()[: rng.randrange(0, 3)], 22050, format="WAV")


def two_gigabytes(path: Path, good: bytes, rng: random.Random) -> None:
    size = rng.choice([2**31 - 1, 2**32 - 1, 2**31]).to_bytes(4, "little")
    path.write_bytes(good[:4] + size + good[8:40] + size + good[44:100])


def wrong_kind(path: Path, good: bytes, rng: random.Random) -> None:
    magic = [b"fLaC", b"OggS", b"ID3\x04", b"FORM", b"caff", b".snd", b"RF64", b"\xff\xfb\x90\x44"]
    path.write_bytes(rng.choice(magic) + rng.randbytes(rng.randrange(0, 3000)))


def text_file(path: Path, good: bytes, rng: random.Random) -> None:
    path.write_text("this is no sound\n" * rng.randrange(1, 50))


def folder(path: Path, good: bytes, rng: random.Random) -> None:
    path.mkdir()
    (path / "inside.txt").write_text("x")


def pipe(path: Path, good: bytes, rng: random.Random) -> None:
    os.mkfifo(path)


def listening(path: Path, good: bytes, rng: random.Random) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # The name of a socket has room for 108 bytes.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


def link_out(path: Path, good: bytes, rng: random.Random) -> None:
    targets = ["/etc/passwd", "/dev/zero", "/dev/random", "/", "../../outside.wav", "/dev/stdin"]
    path.symlink_to(rng.choice(targets))


def link_nowhere(path: Path, good: bytes, rng: random.Random) -> None:
    path.symlink_to(rng.choice([path.name, "absent.wav"]))


def silence(path: Path, good: bytes, rng: random.Random) -> None:
    soundfile.write(path, speech() * 0, 22050, format="WAV")


def vast_and_sparse(path: Path, good: bytes, rng: random.Random) -> None:
    path.write_bytes(b"")
    os.truncate(path, 1 << 40)


def many_channels(path: Path, good: bytes, rng: random.Random) -> None:
    count = rng.choice([0, 1023, 1024, 1025, 65535])
    path.write_bytes(good[:22] + count.to_bytes(2, "little") + good[24:3000])


BREAKS: tuple[Break, ...] = (
    truncated,
    zeroed,
    noise,
    noisy_header,
    zero_hertz,
    one_sample,
    two_gigabytes,
    wrong_kind,
    text_file,
    folder,
    pipe,
    listening,
    link_out,
    link_nowhere,
    silence,
    vast_and_sparse,
    many_channels,
)


def broken_line(rng: random.Random) -> bytes:
    """A line that cannot become a clip, whatever is read into it."""
    return rng.choice(
        [
            b"no bar at all",
            b"|no id|",
            b"a|b|c|d|e|f|g",
            b"nul\0id|text",
            b"id|nul\0text",
            b"\xff\xfe|broken",
            b"id|\xc3\x28",
            b"../../../etc/passwd|text",
            b"/etc/passwd|text",
            b"../" * 3000 + b"x|text",
            b"wavs/../../outside|text",
            "\u202egpj.exe\u202c|text".encode(),
            "absent\u200f|متن".encode(),
            b"x" * 300_000 + b"|text",
            b"y" * 5000 + b"|text",
            b"absent|" + b"z" * 60_000,
            "absent\ud800|x".encode(errors="surrogatepass"),
            b"|||||",
            b"CON|text",
            b"$(reboot)|`reboot`",
            b"%s%n|{0}",
            b"~/x|text",
            b".|text",
            b"..|text",
        ]
    )


def build(root: Path, files: int, lines: int, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    save(root / "good.wav", speech())
    good = (root / "good.wav").read_bytes()
    (root / "good.wav").rename(root.parent / "outside.wav")
    (root / "wavs").mkdir()
    written = []
    for number in range(GOOD):
        save(root / f"wavs/good{number}.wav", speech(1, number))
        written.append(b"good%d|A good sentence.\n" % number)
    for number in range(files):
        name = f"bad{number:04d}.{rng.choice(['wav', 'flac', 'mp3', 'ogg', 'aiff'])}"
        BREAKS[number % len(BREAKS)](root / "wavs" / name, good, rng)
        written.append(f"{name}|Some sentence {number}.\n".encode())
    written += [broken_line(rng) + rng.choice([b"\n", b"\r\n"]) for _ in range(lines)]
    (root / "metadata.csv").write_bytes(b"".join(written))


def test_every_broken_file_and_line_is_named_and_the_good_ones_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    build(data, FILES, LINES, seed=0)
    court = CourtConfig(decode_seconds=5.0)
    manifest = prepared(data, court=court, workers=2, format="ljspeech")
    accepted = set(manifest.table["id"].to_pylist())
    rows = refused(manifest.folder)
    assert accepted >= {f"good{number}" for number in range(GOOD)}
    # A few of the damaged headers still give sound; whatever is not accepted is refused once.
    bad = {f"bad{number:04d}" for number in range(FILES)}
    assert len(accepted & bad) < FILES // 50
    assert {row["id"] for row in rows if row["id"].startswith("bad")} == bad - accepted
    lines = [int(row["line"]) for row in rows if row["line"]]
    first_broken = GOOD + FILES + 1
    assert sorted(n for n in lines if n >= first_broken) == list(
        range(first_broken, first_broken + LINES)
    )
    assert all(row["rule"] and row["measured"] and row["remedy"] for row in rows)


def test_a_folder_of_noise_without_a_list_is_named_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    build(data, len(BREAKS) * 2, 0, seed=1)
    (data / "metadata.csv").unlink()
    for path in (data / "wavs").iterdir():
        with suppress(OSError):
            path.with_suffix(".txt").write_text("A sentence of words.")
    manifest = prepared(data, format="folder", court=CourtConfig(off=("duplicate_audio",)))
    bad = {row["source"] for row in refused(beside(data)) if "bad" in row["source"]}
    assert len(manifest.table) + len(bad) >= GOOD + len(BREAKS) * 2
