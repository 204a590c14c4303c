"""In what two configurations differ, and whether a run may go on with the difference."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from myxtts.checkpoint.errors import CheckpointError
from myxtts.checkpoint.record import Record, present_versions
from myxtts.config.problems import shown


class Absent:
    """Stands for a setting that one side does not have."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = Absent()


@dataclass(frozen=True)
class Change:
    """A setting that is not as it was saved; `key` is its dotted name."""

    key: str
    saved: Any
    present: Any

    def __str__(self) -> str:
        return f"{shown(self.key)}: saved {_written(self.saved)}, now {_written(self.present)}"


class ConfigChangedError(CheckpointError):
    """A checkpoint was saved under settings that the present ones cannot go on from."""

    def __init__(self, source: str, changes: list[Change]) -> None:
        told = "\n".join(f"  {change}" for change in changes)
        back = "\n".join(
            f"  {change.key}={_written(change.saved)}"
            for change in changes
            if change.saved is not ABSENT
        )
        super().__init__(
            f"{source} was saved with other settings:\n{told}",
            (f"to resume it, set them back:\n{back}\n" if back else "")
            + "or start a new run with the present settings, without --resume",
        )
        self.changes = changes


def changes(saved: Mapping[str, Any], present: Mapping[str, Any]) -> list[Change]:
    """Every setting that differs, by its dotted name, in the order of the saved ones."""
    one, two = _flat(saved), _flat(present)
    keys = [*one, *(key for key in two if key not in one)]
    pairs = [Change(key, one.get(key, ABSENT), two.get(key, ABSENT)) for key in keys]
    return [change for change in pairs if _written(change.saved) != _written(change.present)]


def check_config(
    source: str,
    saved: Mapping[str, Any],
    present: Mapping[str, Any],
    may_change: Callable[[Change], bool],
) -> list[Change]:
    """The differences that a run may go on with; raises with every other one."""
    found = changes(saved, present)
    refused = [change for change in found if not may_change(change)]
    if refused:
        raise ConfigChangedError(source, refused)
    return found


def other_versions(record: Record) -> list[Change]:
    """The packages that are of another version: the numbers may then differ in the last bit."""
    return changes(record.versions, present_versions())


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _written(value: Any) -> str:
    """As JSON writes it: there 1 is not 1.0, and true not 1."""
    return repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=False)
