"""`prepare`: list → decode → judge → store; the result stands in its place whole or not at all."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from myxtts.config import DataConfig
from myxtts.decode import Job, Limits, replaced
from myxtts.decode.chunk import MEASURES, read_measures
from myxtts.errors import UserError
from myxtts.manifest import NAME, VERSION, Manifest, read_manifest, write_manifest
from myxtts.prepare.changes import SOURCES, tell_changes, write_sources
from myxtts.prepare.check import check_prepared
from myxtts.prepare.clip import Clip
from myxtts.prepare.court import Case, Court, Vocabulary
from myxtts.prepare.crew import decode_all
from myxtts.prepare.detect import Source, recognise
from myxtts.prepare.listing import Counts, clips, digest_of, read_listing
from myxtts.prepare.progress import Say, show_progress
from myxtts.prepare.report import REFUSED, SUSPECTS, Report
from myxtts.prepare.shards import Shelf
from myxtts.prepare.work import SUMMARY, Work, check_target, is_prepared, working_folder

RATE = 22050
"""Samples per second of everything prepared: what XTTS-v2 hears."""
CHUNK = 32
"""Clips that one process decodes at a time; a kill costs no more than these for each process."""
TOP_RULES = 5


@dataclass(frozen=True)
class Order:
    """What to prepare, where to, and by which settings."""

    data: Path
    out: Path
    settings: DataConfig
    workers: int | None = None
    vocabulary: Vocabulary | None = None
    check: bool = False
    """Reads every source and shard again and compares hashes, instead of sizes and times."""

    @property
    def processes(self) -> int:
        """Left out, as many as there are cores for this process."""
        return self.workers or len(os.sched_getaffinity(0))

    @property
    def key(self) -> str:
        """All that decides the result, besides the clips."""
        court = self.settings.court.model_dump(mode="json")
        decoders = {name: version(name) for name in ("soundfile", "soxr", "numpy")}
        made_by = [VERSION, RATE, CHUNK, self.settings.shard_mb, court, decoders]
        return f"{made_by} {_signature(self.vocabulary)}"


def prepare(order: Order, say: Say) -> Manifest:
    """Makes `out` hold the clips of `data`, or shows that it does already."""
    check_target(order.data, order.out)
    source = recognise(order.data, order.settings.format)
    say(source.sentence)
    if is_prepared(order.out):
        key = _key(order, digest_of(_listed(order, source, Counts())))
        if _is_current(order.out, key) and (not order.check or _proven(order, source, say)):
            say(f"{order.out}: up to date, nothing to do")
            return read_manifest(order.out)
    with working_folder(order.out) as work:
        _make(order, source, work, say)
    return read_manifest(order.out)


def _is_current(out: Path, key: str) -> bool:
    try:
        summary = json.loads((out / SUMMARY).read_text(encoding="utf-8"))
        read_manifest(out)
    except (UserError, ValueError):
        return False  # A shard is gone or short: made again from the clips.
    return bool(summary.get("key") == key)


def _proven(order: Order, source: Source, say: Say) -> bool:
    problems = list(check_prepared(read_manifest(order.out), source.root))
    for problem in problems:
        say(f"--check: {problem}")
    return not problems


def _make(order: Order, source: Source, work: Work, say: Say) -> None:
    counts = Counts()
    with replaced(work.listing) as copy:
        digest = digest_of(_listed(order, source, counts), copy)
    if not counts.all:
        work.discard()
        raise UserError(f"{order.data}: the list names no clip, and the folder holds none")
    if is_prepared(order.out):
        for line in tell_changes(order.out, work.listing):
            say(line)
    key = _key(order, digest)
    if work.begin(key):
        say("going on where an earlier run was stopped")
    _decode(order, source, work, counts, say)
    report = _judge_and_store(order, work, key, counts)
    for line in report.table():
        say(line)
    if not report.accepted:
        raise _all_refused(order, work, report)
    work.finish()
    say(f"{order.out}: {report.accepted} clips prepared; refused ones: {order.out / REFUSED}")


def _listed(order: Order, source: Source, counts: Counts) -> Iterator[Clip]:
    return clips(source, order.settings.language, order.settings.court.links_outside, counts)


def _key(order: Order, digest: str) -> str:
    return hashlib.blake2b(f"{order.key} {digest}".encode(), digest_size=16).hexdigest()


def _signature(vocabulary: Vocabulary | None) -> str:
    """A vocabulary may say by `signature` which one it is; a change of it then counts as one."""
    if vocabulary is None:
        return ""
    return str(getattr(vocabulary, "signature", type(vocabulary).__name__))


def _chunks(work: Work) -> Iterator[tuple[int, Path, list[tuple[int, Clip]]]]:
    """Consecutive clips of the listing: the same chunks whatever the number of processes."""
    listed, number = enumerate(read_listing(work.listing)), 0
    while some := list(islice(listed, CHUNK)):
        yield number, work.chunks / f"{number:06d}", some
        number += 1


def _decode(order: Order, source: Source, work: Work, counts: Counts, say: Say) -> None:
    begun = sum(len(some) for _, target, some in _chunks(work) if _is_done(target))
    done = decode_all(_jobs(order, source, work), order.processes, work.log)
    show_progress(done, counts.all, begun, say)


def _is_done(target: Path) -> bool:
    return target.with_suffix(MEASURES).exists()


def _jobs(order: Order, source: Source, work: Work) -> Iterator[Job]:
    court = order.settings.court
    limits = Limits(
        RATE,
        court.longest_seconds,
        court.lowest_rate,
        court.highest_rate,
        court.decode_seconds,
    )
    for _, target, some in _chunks(work):
        if not _is_done(target):
            wanted = tuple((index, clip.source) for index, clip in some if clip.refusal is None)
            yield Job(source.root, wanted, target, limits)


def _cases(work: Work) -> Iterator[Case]:
    """Every clip with its measures and the place of its samples, in the order of the listing."""
    for number, target, some in _chunks(work):
        measured = {got.index: got for got in read_measures(target)}
        place = 0
        for index, clip in some:
            got = measured.get(index)
            yield Case(clip, got, number, place)
            place += got.samples if got else 0


def _judge_and_store(order: Order, work: Work, key: str, counts: Counts) -> Report:
    settings = order.settings
    court = Court(settings.court, order.vocabulary)
    survey = court.survey(_cases(work))
    shelf = Shelf(work, settings.shard_mb << 20)
    with replaced(work.out / REFUSED) as refused, replaced(work.out / NAME) as manifest:
        report = Report(refused, survey, settings.court.suspects)
        accepted = report.accepting(court.judge(_cases(work), survey))
        write_manifest(manifest, shelf.rows(accepted), shelf.shards, RATE)
    with replaced(work.out / SUSPECTS) as suspects:
        report.write_suspects(suspects)
    with replaced(work.out / SOURCES) as sources:
        write_sources(sources, read_listing(work.listing))
    with replaced(work.out / SUMMARY) as file:
        file.write(json.dumps(_summary(report, counts, key), indent=2).encode() + b"\n")
    return report


def _summary(report: Report, counts: Counts, key: str) -> dict[str, Any]:
    told = report.accepted + report.refused.total()
    assert told == counts.all, f"{counts.all} clips came in, {told} went out"  # noqa: S101
    return {
        "version": VERSION,
        "key": key,
        "listed": counts.listed,
        "found": counts.found,
        "accepted": dict(sorted(report.clips.items())),
        "seconds": {name: ms / 1000 for name, ms in sorted(report.seconds.items())},
        "refused": dict(sorted(report.refused.items())),
    }


def _all_refused(order: Order, work: Work, report: Report) -> UserError:
    kept = order.out.with_name(f"{order.out.name}.{REFUSED}")
    (work.out / REFUSED).replace(kept)
    work.discard()
    rules = _words(report.refused.most_common(TOP_RULES))
    what = f"{order.data}: all {report.refused.total()} clips were refused: {rules}"
    return UserError(what, f"{kept} names each clip, the rule and the remedy")


def _words(rules: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count} by the rule {rule}" for rule, count in rules)
