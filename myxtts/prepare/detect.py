"""What a data folder is taken for, and why; two answers are an error, never a guess."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from myxtts.errors import UserError
from myxtts.prepare import commonvoice, folder, ljspeech, table, vctk
from myxtts.prepare.clip import Record
from myxtts.prepare.files import AUDIO, TEXTS, ending, is_file, is_folder, walk
from myxtts.prepare.lines import read_lines

FORMATS = ("ljspeech", "vctk", "commonvoice", "table", "folder")
LJSPEECH_LISTS = (".csv", ".txt")
LOOKED_FOR = (
    "looked for: id|text|normalised lines in metadata.csv; wav48*/ beside txt/; validated.tsv; "
    "a csv, tsv, jsonl or parquet list with columns such as audio and text; "
    "a .txt or .lab beside each clip"
)


@dataclass(frozen=True)
class Source:
    """A data folder and the list that is read in it, None where the files are their own list."""

    format: str
    root: Path
    listed: Path | None
    why: str
    whole: bool = True
    """All audio files of the folder count, not only those that the list names."""

    @property
    def sentence(self) -> str:
        """What the folder was taken for."""
        place = self.listed if self.listed and not self.whole else self.root
        return f"{place}: read as {self.format} ({self.why})"

    def records(self, links: bool) -> Iterator[Record]:
        """What the list says; `links` enters folders that lie outside."""
        if self.listed is None:
            whole: Callable[[Path, bool], Iterator[Record]] = {
                "vctk": vctk.records,
                "folder": folder.records,
            }[self.format]
            return whole(self.root, links)
        lists: Callable[[Path, Path], Iterator[Record]] = {
            "ljspeech": ljspeech.records,
            "commonvoice": commonvoice.records,
            "table": table.records,
        }[self.format]
        return lists(self.root, self.listed)


def recognise(data: Path, wanted: str | None = None) -> Source:
    """Finds out how the clips are listed; `wanted` is the answer where more than one would do."""
    if is_file(data):
        found = list(_in_list(data.resolve().parent, data.resolve(), whole=False))
    elif is_folder(data):
        found = list(_in_folder(data.resolve()))
    else:
        raise UserError(f"{data}: there is no such file or folder", "name the folder of the clips")
    kept = [source for source in found if wanted in (None, source.format)]
    if not kept:
        what = f"{data}: no clips were found" + (f" in the format {wanted}" if wanted else "")
        others = ", ".join(dict.fromkeys(source.format for source in found))
        raise UserError(what, f"write --format {others}" if found else LOOKED_FOR)
    if len(kept) > 1:
        raise _ambiguous(data, kept)
    return kept[0]


def _ambiguous(data: Path, found: list[Source]) -> UserError:
    formats = list(dict.fromkeys(source.format for source in found))
    what = "; ".join(f"{source.format} ({source.why})" for source in found)
    if len(formats) > 1:
        remedy = f"say which: --format {' or --format '.join(formats)}"
    else:
        remedy = "name the list itself: " + " or ".join(str(source.listed) for source in found)
    return UserError(f"{data} can be read in {len(found)} ways: {what}", remedy)


def _in_folder(root: Path) -> Iterator[Source]:
    lists = sorted(p for p in root.iterdir() if ending(p.name) in table.ENDINGS and is_file(p))
    if root / commonvoice.LIST in lists and is_folder(root / commonvoice.CLIPS):
        # Its other lists (train.tsv, other.tsv …) hold the same clips or unproven ones.
        why = f"{commonvoice.LIST} beside {commonvoice.CLIPS}/"
        yield Source("commonvoice", root, root / commonvoice.LIST, why)
        return
    for listed in lists:
        yield from _in_list(root, listed, whole=True)
    if is_folder(root / vctk.TEXTS) and vctk.recordings(root):
        names = ", ".join(f"{path.name}/" for path in vctk.recordings(root))
        yield Source("vctk", root, None, f"{names} beside {vctk.TEXTS}/")
    elif pair := _first_pair(root):
        yield Source("folder", root, None, pair)


def _in_list(root: Path, listed: Path, *, whole: bool) -> Iterator[Source]:
    if ending(listed.name) not in table.ENDINGS:
        return
    columns = table.columns_of(listed)
    if commonvoice.NAMES.items() <= columns.items() and is_folder(root / commonvoice.CLIPS):
        yield Source("commonvoice", root, listed, f"{listed.name} beside clips/", whole)
    elif all(part in columns for part in table.NEEDED):
        names = ", ".join(f"{part} from {name!r}" for part, name in columns.items())
        yield Source("table", root, listed, f"{listed.name}: {names}", whole)
    elif ending(listed.name) in LJSPEECH_LISTS and _has_bars(listed):
        why = f"{listed.name}: id|text|normalised lines"
        yield Source("ljspeech", root, listed, why, whole)


def _has_bars(listed: Path) -> bool:
    """Most of the first lines; one broken line must not hide a list."""
    first = [line.text for _, line in zip(range(10), read_lines(listed), strict=False)]
    return bool(first) and sum("|" in text for text in first) * 2 >= len(first)


def _first_pair(root: Path) -> str:
    texts: set[str] = set()
    clips: set[str] = set()
    for path in walk(root, False):
        name, end = path.rpartition(".")[0], ending(path)
        if end in AUDIO:
            clips.add(name)
        elif end in TEXTS:
            texts.add(name)
        if name in clips and name in texts:
            return f"{name} has a text beside it"
    return ""
