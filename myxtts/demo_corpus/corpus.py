"""The demo corpus: phrases drawn, spoken by several voices, laid out as LJSpeech does."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import myxtts
from myxtts.demo_corpus.grammar import Phrase, all_phrases, split
from myxtts.errors import UserError

CLIPS = 7800
"""Training clips: 3,000 English and 900 Persian phrases in each voice, 4.9 hours."""
HELD_OUT_SHARE = {"en": 60 / 3000, "fa": 30 / 900}
ENGLISH_SHARE = 10 / 13
LEAST_HELD_OUT = 3
VOICES = {
    "en": {"f2": "en-us+f2", "steph": "en-us+steph"},
    "fa": {"f2": "fa+f2", "steph": "fa+steph"},
}
"""Speaker → espeak-ng's voice. Recognisers understand these two best."""
SPEAKERS = 2
PARTS = ("train", "heldout")
README = """\
Synthetic speech, made by `myxtts demo-corpus`. Nobody spoke it: the words come from a small
grammar and the sound from the espeak-ng synthesiser.

It is for trying out MyXTTS from clips to a voice in minutes, and for tests. It is not for
training a voice that is to sound like a person.

train/    {train} clips to learn from
heldout/  {heldout} clips to judge by: no phrase of theirs is in train/, each is one word away
          from a phrase that is

Each part is laid out as LJSpeech is: wavs/ID.wav and metadata.csv with the lines
ID|text|text|speaker|language. Languages: English (en), Persian (fa). Speakers: {speakers}.
22050 samples a second, mono, 16 bits; trimmed, peak 0.7. Seed {seed}.

    myxtts prepare {name}/train --out {name}-prepared
"""


@dataclass(frozen=True)
class Spoken:
    """One clip to be made."""

    part: str
    id: str
    text: str
    speaker: str
    language: str

    @property
    def line(self) -> str:
        """Its line in the list."""
        return "|".join((self.id, self.text, self.text, self.speaker, self.language)) + "\n"


def make_corpus(out: Path, clips: int, seed: int, say: Callable[[str], None]) -> None:
    """Makes the corpus beside `out` and renames it, so that it is there whole or not at all."""
    if find_spec("espeakng_loader") is None:
        what = "the demo corpus is spoken by espeak-ng, which is not installed"
        raise UserError(what, "install the extra: pip install 'myxtts[demo]'")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already", "name a folder that does not exist yet")
    wanted = plan_corpus(clips, seed)
    beside = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        _write(beside, out.name, wanted, seed)
        _speak(beside, wanted, say)
        beside.rename(out)
    except OSError as error:
        why = f"{error.strerror or error} ({error.filename or beside})"
        raise UserError(f"{out} cannot be written: {why}", "name a folder with room") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    say(f"{out}: {len(wanted)} synthetic clips; prepare them: myxtts prepare {out / 'train'} …")


def plan_corpus(clips: int, seed: int) -> list[Spoken]:
    """Every clip of the corpus, the same for the same numbers."""
    phrases = clips // SPEAKERS
    english = round(phrases * ENGLISH_SHARE)
    wanted: list[Spoken] = []
    for language, count in (("en", english), ("fa", phrases - english)):
        held_out = max(LEAST_HELD_OUT, round(count * HELD_OUT_SHARE[language]))
        known = len(all_phrases(language))
        if count + held_out > known:
            most = int((known - held_out) * SPEAKERS / (1 - ENGLISH_SHARE) * 0.99)
            raise UserError(f"the grammar has {known} phrases in {language}", f"--clips {most}")
        # A text seeds Python's generator by itself, not by the hash of a process.
        rng = random.Random(f"{seed} {language}")  # noqa: S311
        for part, drawn in zip(PARTS, split(language, count, held_out, rng), strict=True):
            wanted += _spoken(part, language, drawn)
    return wanted


def _spoken(part: str, language: str, drawn: Sequence[Phrase]) -> Iterator[Spoken]:
    for speaker in VOICES[language]:
        for number, phrase in enumerate(drawn):
            name = f"{language}_{speaker}_{number:05d}"
            yield Spoken(part, name, " ".join(phrase), speaker, language)


def _write(folder: Path, name: str, wanted: list[Spoken], seed: int) -> None:
    counts = {}
    for part in PARTS:
        (folder / part / "wavs").mkdir(parents=True)
        lines = [clip.line for clip in wanted if clip.part == part]
        counts[part] = len(lines)
        (folder / part / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    speakers = ", ".join(VOICES["en"])
    text = README.format(**counts, speakers=speakers, seed=seed, name=name)
    (folder / "README.txt").write_text(text, encoding="utf-8")


def _speak(folder: Path, wanted: list[Spoken], say: Callable[[str], None]) -> None:
    package = str(Path(myxtts.__file__).parents[1])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    jobs = folder / "jobs.jsonl"
    jobs.write_text("".join(_job(folder, clip) for clip in wanted), encoding="utf-8")
    with jobs.open("rb") as lines:
        process = subprocess.Popen(
            [sys.executable, "-m", "myxtts.demo_corpus.espeak"],
            stdin=lines,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
    with process:
        assert process.stdout is not None  # noqa: S101 - It is a pipe, asked for above.
        for count, _ in enumerate(process.stdout, start=1):
            if count * 10 // len(wanted) > (count - 1) * 10 // len(wanted):
                say(f"spoke {count} of {len(wanted)} clips")
    if process.returncode:
        raise UserError(
            f"espeak-ng ended with code {process.returncode}, see above",
            "install the extra again: pip install --force-reinstall espeakng-loader",
        )
    jobs.unlink()


def _job(folder: Path, clip: Spoken) -> str:
    path = folder / clip.part / "wavs" / f"{clip.id}.wav"
    job = {"voice": VOICES[clip.language][clip.speaker], "text": clip.text, "path": str(path)}
    return json.dumps(job) + "\n"
