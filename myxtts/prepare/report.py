"""What is told of a hearing: refused.csv, suspects.csv, and a table for the screen."""

import csv
import heapq
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from myxtts.prepare.clip import REMEDIES, Clip, Refusal
from myxtts.prepare.court import Case, Survey, Verdict

REFUSED, SUSPECTS = "refused.csv", "suspects.csv"
HEADER = ("rule", "source", "list", "line", "id", "measured", "bound", "remedy")
SUSPECTS_HEADER = ("why", "value", "source", "list", "line", "id", "language", "text")
Ranked = tuple[float, int, tuple[object, ...]]


@dataclass
class Report:
    """Counts verdicts as they pass, and writes down those that refuse."""

    refused_csv: BinaryIO
    survey: Survey
    suspects: int
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    clips: Counter[str] = field(default_factory=Counter)
    """Accepted clips by language."""
    seconds: Counter[str] = field(default_factory=Counter)
    ranked: dict[str, list[Ranked]] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        """Accepted clips of all languages."""
        return self.clips.total()

    def accepting(self, verdicts: Iterable[Verdict]) -> Iterator[Case]:
        """The accepted clips, in order."""
        self.refused_csv.write(csv_line(HEADER))
        for case, refusal in verdicts:
            if refusal:
                self._refuse(case.clip, refusal)
            else:
                self._accept(case)
                yield case

    def _refuse(self, clip: Clip, refusal: Refusal) -> None:
        self.refused[refusal.rule] += 1
        place = clip.source if clip.source not in ("", ".") else _place(clip)
        self.examples.setdefault(refusal.rule, f"{place} ({refusal.measured})")
        self.refused_csv.write(
            csv_line((refusal.rule, clip.source, *_listed(clip), *refusal[1:], refusal.remedy))
        )

    def _accept(self, case: Case) -> None:
        language = case.clip.record.language
        self.clips[language] += 1
        # Samples, not seconds: whole numbers add up alike in any order.
        self.seconds[language] += round((case.measures.seconds if case.measures else 0) * 1000)
        self._rank("lowest signal to noise", -case.snr_db, f"{case.snr_db:.1f} dB", case)
        oddness = self.survey.oddness(case)
        self._rank("unusual ratio", abs(oddness), f"{case.ratio:.1f} characters per second", case)

    def _rank(self, why: str, strangeness: float, value: str, case: Case) -> None:
        clip, heap = case.clip, self.ranked.setdefault(why, [])
        number, spoken = self.accepted, clip.record.language
        row = (why, value, clip.source, *_listed(clip), spoken, case.text)
        entry = (strangeness, -number, row)
        if len(heap) < self.suspects:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)

    def write_suspects(self, file: BinaryIO) -> None:
        """The strangest accepted clips for each reason, the strangest first."""
        file.write(csv_line(SUSPECTS_HEADER))
        for heap in self.ranked.values():
            for _, _, row in sorted(heap, reverse=True):
                file.write(csv_line(row))

    def table(self) -> Iterator[str]:
        """The summary, line by line."""
        for language in sorted(self.clips):
            hours = self.seconds[language] / 3_600_000
            yield f"accepted {self.clips[language]} clips in {language}, {hours:.2f} hours"
        if self.refused:
            yield f"refused {self.refused.total()} clips:"
        for rule in (rule for rule in REMEDIES if rule in self.refused):
            yield f"   {rule:<15} {self.refused[rule]:>7}  {_line(self.examples[rule])}"
            yield f"   {'':<15} {'':>7}  → {REMEDIES[rule]}"


def csv_line(cells: Iterable[object]) -> bytes:
    """One line of CSV; what no terminal should be shown stands as its code."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([plain(str(cell)) for cell in cells])
    return text.getvalue().encode()


def plain(text: str) -> str:
    """Text without control characters, marks of direction and halves of characters.

    Joiners (ZWNJ, ZWJ) are letters of Persian and Hindi and stay.
    """
    return "".join(
        c if c.isprintable() or c in "\u200c\u200d" else c.encode("unicode_escape").decode()
        for c in text
    )


def _listed(clip: Clip) -> tuple[object, ...]:
    return clip.record.list, clip.record.line or "", clip.record.id


def _place(clip: Clip) -> str:
    return f"{clip.record.list}:{clip.record.line}"


def _line(text: str) -> str:
    short = plain(text)
    return short if len(short) <= 70 else short[:69] + "…"
