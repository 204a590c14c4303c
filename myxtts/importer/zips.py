"""The table of contents of a zip file as torch writes them: members stored as they are.

Only the places of the members are read, and nothing is unpacked. What a file of weights never
has is refused: compression, encryption, members that overlap, repeat or leave the folder.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from myxtts.importer.known import RefusedError
from myxtts.importer.source import Block, Source

LARGEST_TABLE = 1 << 26  # Bytes; the released model.pth has about 100 kB.
MOST_MEMBERS = 1 << 17
_END, _END_64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q")
_FINDER_64 = struct.Struct("<4sLQL")
_ENTRY, _LOCAL = struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT = 0xFFFF
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF
_EXTRA_64 = 1


@dataclass(frozen=True)
class _Entry:
    name: str
    checksum: int
    length: int
    header: int


def read_members(source: Source) -> dict[str, Block]:
    """Where each member's bytes lie."""
    start, length, count = _find_table(source)
    if length > LARGEST_TABLE or count > MOST_MEMBERS or start + length > source.size:
        raise RefusedError(f"it announces a table of {count} members in {length} bytes")
    entries = list(_entries(bytes(source.read(start, length)), count))
    _check_names([entry.name for entry in entries])
    if sum(entry.length for entry in entries) > start:
        raise RefusedError("its members are together larger than the file itself")
    members = {entry.name: _place(source, entry, start) for entry in entries}
    _check_apart(members)
    return members


def _find_table(source: Source) -> tuple[int, int, int]:
    """The table's place, its length, and how many members it lists."""
    tail_start = max(0, source.size - _END.size - _LONGEST_COMMENT)
    tail = bytes(source.read(tail_start, source.size - tail_start))
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < _END.size:
        raise RefusedError("it has no end of a zip file; perhaps the download broke off")
    _, disk, first, here, count, length, start, _ = _END.unpack_from(tail, at)
    if (disk or first or here != count) and _FULL_16 not in (disk, first):
        raise RefusedError("it is one part of a zip file in several")
    if _FULL_16 in (disk, count) or _FULL_32 in (length, start):
        return _find_table_64(source, tail_start + at)
    return start, length, count


def _find_table_64(source: Source, end: int) -> tuple[int, int, int]:
    finder = source.read(end - _FINDER_64.size, _FINDER_64.size)
    mark, _, at, _ = _FINDER_64.unpack(finder)
    if mark != b"PK\6\7":
        raise RefusedError("the end of its zip file is damaged")
    mark, *_, here, count, length, start = _END_64.unpack(source.read(at, _END_64.size))
    if mark != b"PK\6\6" or here != count:
        raise RefusedError("the end of its zip file is damaged")
    return start, length, count


def _entries(table: bytes, count: int) -> Iterator[_Entry]:
    at = 0
    for _ in range(count):
        if len(table) < at + _ENTRY.size:
            raise RefusedError("its table of members breaks off")
        fields = _ENTRY.unpack_from(table, at)
        name_length, extra_length, comment_length = fields[10:13]
        name_at = at + _ENTRY.size
        extra_at = name_at + name_length
        at = extra_at + extra_length + comment_length
        if fields[0] != b"PK\1\2" or at > len(table):
            raise RefusedError("its table of members is damaged")
        name = _name(table[name_at:extra_at])
        yield _entry(name, fields, table[extra_at : extra_at + extra_length])


def _entry(name: str, fields: tuple[int, ...], extra: bytes) -> _Entry:
    flags, method, checksum = fields[3], fields[4], fields[7]
    if flags & 1:
        raise RefusedError(f"its member {name!r} is encrypted")
    if method:
        raise RefusedError(f"its member {name!r} is compressed; torch stores weights as they are")
    wide = _wide_fields(extra, [fields[9], fields[8], fields[16]])
    length, packed, header = wide
    if length != packed:
        raise RefusedError(f"its member {name!r} has two lengths, {packed} and {length}")
    return _Entry(name, checksum, length, header)


def _wide_fields(extra: bytes, narrow: list[int]) -> list[int]:
    """Lengths and place, of 64 bits where 32 were too few."""
    if _FULL_32 not in narrow:
        return narrow
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        body, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _EXTRA_64:
            numbers = iter(struct.unpack(f"<{len(body) // 8}Q", body[: len(body) // 8 * 8]))
            return [next(numbers, n) if n == _FULL_32 else n for n in narrow]
    return narrow


def _name(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("a member's name is not UTF-8") from None


def _check_names(names: list[str]) -> None:
    for name in names:
        strange = "\\" in name or ":" in name or not name.isprintable()
        if strange or {"", ".", ".."} & set(name.split("/")):
            raise RefusedError(f"its member {name[:200]!r} would lie outside the file's own folder")
    for before, after in pairwise(sorted(names)):
        if before == after:
            raise RefusedError(f"it has two members of the name {before!r}")


def _place(source: Source, entry: _Entry, table: int) -> Block:
    """The member's bytes, behind a header that must tell the same name."""
    header = source.read(entry.header, _LOCAL.size)
    mark, *_, name_length, extra_length = _LOCAL.unpack(header)
    name_at = entry.header + _LOCAL.size
    if mark != b"PK\3\4" or _name(bytes(source.read(name_at, name_length))) != entry.name:
        raise RefusedError(f"its member {entry.name!r} is not where the table says")
    start = name_at + name_length + extra_length
    if start + entry.length > table:
        raise RefusedError(f"its member {entry.name!r} is longer than the file")
    return Block(start, entry.length, entry.checksum)


def _check_apart(members: dict[str, Block]) -> None:
    placed = sorted(members.items(), key=lambda item: (item[1].start, item[1].length))
    for (name, block), (other, following) in pairwise(placed):
        if block.start + block.length > following.start:
            raise RefusedError(f"its members {name!r} and {other!r} lie in the same place")
