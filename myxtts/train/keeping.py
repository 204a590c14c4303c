"""Codes that are made once: encoded before the first step, or kept as the first epoch makes them.

Legend: K buckets, C clips, B rows, N codes.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from myxtts.audio import codes_for_samples
from myxtts.batch import Batch
from myxtts.cache import CodeCache, Key
from myxtts.clips import ClipSound, Part
from myxtts.pipeline import Program, extract, in_turn, run_ahead
from myxtts.plan import NO_CLIP, Once, Plan, mark
from myxtts.reader import Reader, read_batches
from myxtts.telemetry.record import Recorder
from myxtts.view.live import Advance

Wanted = NDArray[np.bool_]
"""[K, C]: which clips, in which buckets."""
AHEAD = 2
"""Batches that each device encodes ahead of the writing."""


class Shelf:
    """The place of one part's clips in the cache."""

    def __init__(self, cache: CodeCache, part: Part, sound: ClipSound) -> None:
        self._cache = cache
        self._sound = sound
        hashes = part.manifest.column("pcm_hash")[part.rows]
        self._clips = [bytes.fromhex(each) for each in hashes]

    def lacking(self, plans: Sequence[Plan], numbers: range) -> Wanted:
        """What these batches, and each plan's first epoch, need and the cache has not."""
        tops = self._sound.reader.plan.ladder.tops
        wanted_KC = np.zeros([len(tops), len(self._clips)], bool)
        for plan in plans:
            epoch = plan.batches_per_epoch
            mark(wanted_KC, plan.table(0, epoch))  # Of it each shape's first batch is compiled.
            for first in range(numbers.start, numbers.stop, epoch):
                mark(wanted_KC, plan.table(first, min(epoch, numbers.stop - first)))
        firsts: dict[bytes, int] = {}
        first_C = np.array([firsts.setdefault(clip, n) for n, clip in enumerate(self._clips)])
        for top, wanted_C in zip(tops, wanted_KC, strict=True):
            # A clip that comes twice, as replayed ones may, is encoded once.
            clips = np.unique(first_C[wanted_C])
            wanted_C[:] = False
            wanted_C[[c for c in clips if Key(self._clips[c], top) not in self._cache]] = True
        return wanted_KC

    def batches(self, lacking_KC: Wanted) -> Reader:
        """What reads those clips, in the shapes that the same codes would be made in live."""
        reader = self._sound.reader
        return Reader(reader.source, Once(reader.plan, lacking_KC))

    def fill(self, reader: Reader, programs: Sequence[Program], advance: Advance) -> None:
        """Encodes every batch that this reads; several devices take turns."""
        silent, turns = Recorder(), len(programs)
        numbers = range(reader.plan.batches_per_epoch)
        with ExitStack() as stack:
            lanes = []
            for place, program in enumerate(programs):
                mine = numbers[place::turns]
                device, data = program.device, self._sound.settings
                raw = read_batches(reader, mine, data, device, silent)
                ahead = run_ahead(extract(raw, program, silent), AHEAD, silent, "encoder")
                lanes.append(stack.enter_context(ahead))
            for batch in in_turn(lanes):
                self._put(reader.plan, batch)
                advance()

    def keep(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Hands batches on, and their codes to the cache."""
        for batch in batches:
            self._put(self._sound.reader.plan, batch)
            yield batch

    def told(self, readers: Sequence[Reader]) -> list[Reader]:
        """The readers, with the codes that are here."""
        codes = self._cache.codes(self._clips, self._sound.reader.plan.ladder.tops)
        return [reader._replace(codes=codes) for reader in readers]

    def _put(self, plan: Plan, batch: Batch) -> None:
        planned, codes_BN = plan.batch(batch.number), batch.tensors["codes"].numpy()
        top = plan.ladder.tops[planned.bucket]
        rows_and_clips = [(r, c) for r, c in enumerate(planned.clips.tolist()) if c != NO_CLIP]
        # The codec gives one more for the frame behind the last whole code: no one learns it.
        codes = [codes_BN[r, : codes_for_samples(int(plan.samples[c]))] for r, c in rows_and_clips]
        self._cache.put([Key(self._clips[c], top) for _, c in rows_and_clips], codes)
