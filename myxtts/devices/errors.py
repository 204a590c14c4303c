"""A device that cannot be given as asked, with the command that would work."""

import shlex
from collections.abc import Mapping, Sequence

from myxtts.errors import UserError

Changes = Mapping[str, str | None]
"""Flags to set in the user's command; None leaves the flag out."""

SWITCHES = ("--enable-memory-isolation",)
TYPED_BY_NOBODY = ("myxtts", "train")


class DeviceError(UserError):
    """Names what cannot be given; `fixes` are changes to the command, best first."""

    def __init__(self, problem: str, *fixes: Changes, command: Sequence[str] = TYPED_BY_NOBODY):
        self.fixes = fixes
        super().__init__(problem, "\n".join(f"run: {amend(command, fix)}" for fix in fixes))

    def for_command(self, command: Sequence[str]) -> "DeviceError":
        """The same error with its remedy written as changes to the command the user typed."""
        return DeviceError(self.problem, *self.fixes, command=command)


def amend(command: Sequence[str], changes: Changes) -> str:
    """The command with flags set or left out, as one line to copy."""
    kept: list[str] = []
    words = iter(command)
    for word in words:
        flag, joined, _ = word.partition("=")
        if flag not in changes:
            kept.append(word)
        elif not joined and flag not in SWITCHES:
            next(words, None)
    for flag, value in changes.items():
        if value is not None:
            kept += [flag] if flag in SWITCHES else [flag, value]
    return shlex.join(kept)
