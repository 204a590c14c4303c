"""One checkpoint on the disk: written whole, checked, and read array by array."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from myxtts.checkpoint.disk import check_room, write_file, written_beside
from myxtts.checkpoint.errors import BrokenError, CheckpointError
from myxtts.checkpoint.record import (
    RECORD,
    TENSORS,
    Record,
    finite,
    present_versions,
    read_record,
    record_bytes,
)
from myxtts.checkpoint.state import Array, State, outline
from myxtts.checkpoint.tensor_file import (
    StoredArray,
    read_tensors,
    reading,
    sum_of,
    write_tensors,
)

MOST_TOLD = 20
"""Misfits that an error names."""
PER_ARRAY = 300  # Bytes of a file's table, at most about that.

Targets = Mapping[str, Mapping[str, Any]]
"""The variables of each group by name."""
Assign = Callable[[Any, Array], None]


@dataclass(frozen=True)
class Stored:
    """A checkpoint whose record is right; `check` looks at its files too."""

    folder: Path
    record: Record

    def check(self) -> None:
        """Reads every file, and raises for the first that is not as it was written."""
        for name, wanted in self.record.files.items():
            file = self.folder / name
            with reading(file):
                size = file.stat().st_size
            if size != wanted.bytes:
                raise BrokenError(file, f"has {size} bytes; {wanted.bytes} were written")
            if sum_of(file) != wanted:
                raise BrokenError(file, "is not as it was written: its sum is another")

    @cached_property
    def groups(self) -> dict[str, dict[str, StoredArray]]:
        """The arrays by group and name, each read when it is asked for."""
        names = self.record.files
        return {name.removesuffix(TENSORS): read_tensors(self.folder / name) for name in names}

    def arrays(self, group: str) -> Iterator[tuple[str, Array]]:
        """Reads a group, one array in memory at a time."""
        if group not in self.groups:
            raise CheckpointError(f"{self.folder} has no {group}", self._remedy())
        for name, stored in self.groups[group].items():
            yield name, stored.numpy()

    def restore(self, targets: Targets, assign: Assign | None = None) -> None:
        """Gives every variable its array, one at a time; raises before the first if one misfits.

        Call it under the variables' own device: an assigned array goes by the present one.
        """
        faults = [fault for group in targets for fault in self._misfits(group, targets[group])]
        if faults:
            rest = f"; and {len(faults) - MOST_TOLD} more" if len(faults) > MOST_TOLD else ""
            told = "; ".join(faults[:MOST_TOLD]) + rest
            raise CheckpointError(f"{self.folder} does not fit: {told}", self._remedy())
        for group, variables in targets.items():
            for name, array in self.arrays(group):
                if assign:
                    assign(variables[name], array)
                else:
                    variables[name].assign(array)

    def _misfits(self, group: str, variables: Mapping[str, Any]) -> Iterator[str]:
        if group not in self.groups:
            yield f"it has no {group}"
            return
        stored = self.groups[group]
        yield from (f"missing {group}/{name}" for name in sorted(variables.keys() - stored.keys()))
        extra = sorted(stored.keys() - variables.keys())
        yield from (f"unexpected {group}/{name}" for name in extra)
        for name in variables.keys() & stored.keys():
            (kind, shape), (own, length) = outline(stored[name]), outline(variables[name])
            if (kind, shape) != (own, length):
                yield f"{group}/{name} is {kind}{list(shape)}, wanted is {own}{list(length)}"

    def _remedy(self) -> str:
        if self.record.made_from:
            return "it is a slim copy: a run can start from its weights, and not be resumed from it"
        return "resume with the settings that it was saved with, or start a run from its weights"


def open_stored(folder: Path) -> Stored:
    """A checkpoint by its folder; only its record is read and checked."""
    return Stored(folder, read_record(folder))


def write_stored(
    target: Path, state: State, serial: int, made_from: Mapping[str, Any] | None = None
) -> Stored:
    """Writes a checkpoint beside its place, brings it to the disk, and renames it."""
    record = Record(
        step=state.step,
        serial=serial,
        saved_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        config=state.config,
        facts=state.facts,
        metrics=finite(state.metrics),
        versions=present_versions(),
        files={},
        made_from=made_from,
    )
    check_room(target, room_of(state))
    with written_beside(target) as folder:
        files = {
            name + TENSORS: write_tensors(folder / (name + TENSORS), group)
            for name, group in state.groups.items()
        }
        record = replace(record, files=files)
        write_file(folder / RECORD, record_bytes(record))
    return Stored(target, record)


def room_of(state: State) -> int:
    """Bytes that the state takes on the disk, its tables and record guessed generously."""
    count = sum(len(group) for group in state.groups.values())
    return state.bytes + PER_ARRAY * count
