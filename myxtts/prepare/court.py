"""The court: which clips are refused, by which rule, at which value.

Own rules look at one clip; shared rules compare it with all those that pass their own.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from myxtts.config import CourtConfig
from myxtts.decode import Measures
from myxtts.prepare.clip import Clip, Refusal

SCALED_MAD = 1.4826
"""Makes the median absolute deviation of a normal distribution its standard deviation."""
ABOVE_FLOOR_DB = 6.0
"""An edge no louder than the background is background, whatever the speech."""
MOST_SHOWN = 12


class Vocabulary(Protocol):
    """What a text may be made of."""

    def unknown_characters(self, text: str, language: str) -> dict[str, int]:
        """Characters that have no token, and how often each occurs."""


@dataclass(frozen=True)
class CharacterSet:
    """A vocabulary that is a set of characters, the same for every language."""

    characters: frozenset[str]

    def unknown_characters(self, text: str, language: str) -> dict[str, int]:  # noqa: ARG002
        """Characters outside the set, white space excepted, and how often each occurs."""
        return Counter(c for c in text if c not in self.characters and not c.isspace())


@dataclass(frozen=True)
class Case:
    """A clip and what was measured on it; None where it was refused before decoding."""

    clip: Clip
    measures: Measures | None
    chunk: int = 0
    place: int = 0
    """Where its samples begin in its chunk."""

    @property
    def text(self) -> str:
        """What is said, without the white space around it."""
        return (self.clip.record.text or "").strip()

    @property
    def ratio(self) -> float:
        """Characters per second, white space excepted."""
        seconds = self.measures.seconds if self.measures else 0.0
        return sum(not c.isspace() for c in self.text) / max(seconds, 1e-3)

    @property
    def snr_db(self) -> float:
        """How far the speech stands above the background."""
        return self.measures.speech_db - self.measures.floor_db if self.measures else 0.0


Verdict = tuple[Case, Refusal | None]
OwnRule = Callable[[Case, Measures, CourtConfig], Refusal | None]


def _unreadable(_case: Case, got: Measures, court: CourtConfig) -> Refusal | None:
    bound = f"decoded within {court.decode_seconds:g} s"
    return Refusal("unreadable", got.failure, bound) if got.failure else None


def _not_finite(_case: Case, got: Measures, _court: CourtConfig) -> Refusal | None:
    return Refusal("not_finite", f"{got.not_finite} samples", "0") if got.not_finite else None


def _empty(_case: Case, got: Measures, _court: CourtConfig) -> Refusal | None:
    return None if got.seconds else Refusal("empty", "0 samples", "at least 1")


def _long(_case: Case, got: Measures, court: CourtConfig) -> Refusal | None:
    if got.seconds <= court.longest_seconds:
        return None
    return Refusal("long", f"{got.seconds:.2f} s", f"at most {court.longest_seconds:g} s")


def _short(_case: Case, got: Measures, court: CourtConfig) -> Refusal | None:
    if got.seconds >= court.shortest_seconds:
        return None
    return Refusal("short", f"{got.seconds:.3f} s", f"at least {court.shortest_seconds:g} s")


def _silent(_case: Case, got: Measures, court: CourtConfig) -> Refusal | None:
    if got.loudest_db >= court.silent_db:
        return None
    return Refusal("silent", f"{got.loudest_db:.1f} dB", f"at least {court.silent_db:g} dB")


def _clipped(_case: Case, got: Measures, court: CourtConfig) -> Refusal | None:
    if got.rail_share <= court.clipped_share:
        return None
    bound = f"at most {court.clipped_share:.1%}"
    return Refusal("clipped", f"{got.rail_share:.1%} of the samples", bound)


def _cut(rule: str, edge_db: float, got: Measures, court: CourtConfig) -> Refusal | None:
    below = edge_db - got.speech_db
    if below <= court.edge_db or edge_db <= got.floor_db + ABOVE_FLOOR_DB:
        return None
    return Refusal(rule, f"{below:.1f} dB", f"at most {court.edge_db:g} dB from the speech")


def _cut_start(_case: Case, got: Measures, court: CourtConfig) -> Refusal | None:
    return _cut("cut_start", got.start_db, got, court)


def _cut_end(_case: Case, got: Measures, court: CourtConfig) -> Refusal | None:
    return _cut("cut_end", got.end_db, got, court)


def _long_text(case: Case, _got: Measures, court: CourtConfig) -> Refusal | None:
    if len(case.text) <= court.longest_text:
        return None
    return Refusal("long_text", f"{len(case.text)} characters", f"at most {court.longest_text}")


OWN_RULES: tuple[OwnRule, ...] = (
    _unreadable,
    _not_finite,
    _long,
    _empty,
    _short,
    _silent,
    _clipped,
    _cut_start,
    _cut_end,
    _long_text,
)


def _floats() -> "array[float]":
    return array("f")


@dataclass
class Survey:
    """What the clips that pass their own rules are like together."""

    ratios: "dict[str, array[float]]" = field(default_factory=lambda: defaultdict(_floats))
    texts: dict[str, int] = field(default_factory=dict)
    """The text that each sound was given, by hash; 0 where it was given several."""
    usual: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Median and spread of characters per second, by language."""

    def add(self, case: Case, got: Measures) -> None:
        """Takes one clip into account."""
        self.ratios[case.clip.record.language].append(case.ratio)
        text = hash(case.text) or 1
        self.texts[got.pcm_hash] = text if self.texts.get(got.pcm_hash, text) == text else 0

    def close(self) -> None:
        """Settles what is usual in each language."""
        for language, ratios in self.ratios.items():
            middle = median(ratios)
            spread = SCALED_MAD * median(abs(ratio - middle) for ratio in ratios)
            self.usual[language] = (middle, spread)

    def oddness(self, case: Case) -> float:
        """How many spreads a clip's characters per second lie off the median."""
        middle, spread = self.usual[case.clip.record.language]
        return (case.ratio - middle) / max(spread, 0.05 * middle, 1e-6)


class Court:
    """The rules of a configuration, applied to every clip in order."""

    def __init__(self, court: CourtConfig, vocabulary: Vocabulary | None) -> None:
        self.court = court
        self.vocabulary = vocabulary
        self.ids: dict[str, str] = {}
        self.sounds: dict[str, str] = {}

    def survey(self, cases: Iterable[Case]) -> Survey:
        """The first hearing: what is usual, and which sounds were given two texts."""
        survey = Survey()
        for case in cases:
            if case.measures and not self.own(case):
                survey.add(case, case.measures)
        survey.close()
        return survey

    def judge(self, cases: Iterable[Case], survey: Survey) -> Iterator[Verdict]:
        """The second hearing: a verdict on every clip, in the same order."""
        for case in cases:
            refusal = self.own(case)
            if refusal is None and case.measures:
                refusal = self._shared(case, case.measures, survey)
            yield case, refusal

    def own(self, case: Case) -> Refusal | None:
        """The first rule that a clip breaks by itself."""
        if case.measures is None:
            return case.clip.refusal
        for rule in OWN_RULES:
            refusal = rule(case, case.measures, self.court)
            if refusal and refusal.rule not in self.court.off:
                return refusal
        return None if "characters" in self.court.off else self._characters(case)

    def _characters(self, case: Case) -> Refusal | None:
        if self.vocabulary is None:
            return None
        unknown = self.vocabulary.unknown_characters(case.text, case.clip.record.language)
        if not unknown:
            return None
        often = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))[:MOST_SHOWN]
        shown = ", ".join(f"{character} (U+{ord(character[0]):04X}) x{n}" for character, n in often)
        return Refusal("characters", shown, "only characters of the vocabulary")

    def _shared(self, case: Case, got: Measures, survey: Survey) -> Refusal | None:
        off = self.court.off
        if "ratio" not in off and (refusal := self._ratio(case, survey)):
            return refusal
        if "texts_differ" not in off and survey.texts[got.pcm_hash] == 0:
            return Refusal("texts_differ", "the same sound has another text", "one text a sound")
        number, source = case.clip.record.id, case.clip.source
        if "duplicate_id" not in off and number in self.ids:
            return Refusal("duplicate_id", f"{number}, as {self.ids[number]}", "one clip an id")
        if "duplicate_audio" not in off and got.pcm_hash in self.sounds:
            measured = f"sounds as {self.sounds[got.pcm_hash]}"
            return Refusal("duplicate_audio", measured, "every sound once")
        self.ids[number] = self.sounds[got.pcm_hash] = source
        return None

    def _ratio(self, case: Case, survey: Survey) -> Refusal | None:
        low, high = self._ratio_bounds(case.clip.record.language, survey)
        if low <= case.ratio <= high:
            return None
        bound = f"{low:.1f} to {high:.1f}"
        return Refusal("ratio", f"{case.ratio:.1f} characters per second", bound)

    def _ratio_bounds(self, language: str, survey: Survey) -> tuple[float, float]:
        court = self.court
        low, high = court.ratio_lowest, court.ratio_highest
        if len(survey.ratios[language]) < court.ratio_clips:
            return low, high
        middle, spread = survey.usual[language]
        width = max(court.ratio_spread * spread, court.ratio_margin * middle)
        return max(low, middle - width), min(high, middle + width)
