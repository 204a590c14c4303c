"""Common Voice: `validated.tsv` (client_id, path, sentence, locale) with the clips in `clips/`."""

from collections.abc import Iterator
from pathlib import Path

from myxtts.prepare import table
from myxtts.prepare.clip import Record

LIST = "validated.tsv"
CLIPS = "clips"
NAMES = {"audio": "path", "text": "sentence", "speaker": "client_id"}


def records(root: Path, listed: Path) -> Iterator[Record]:
    """One record for each line after the first."""
    return table.records(root, listed, CLIPS)
