"""Reads the pickles of torch files as data: nothing is imported, called or made from them.

A pickle is a program for a machine with a stack. This machine knows the instructions that torch
writes and stops at any other. What a pickle names is looked up in `known.py`: tensors become
records of where their numbers lie, classes of the reference empty objects, and the rest is
refused by name.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any

from myxtts.importer.known import Inert, RefusedError, call, look_up, storage_of

LARGEST = 8 << 20  # Bytes; the released model.pth has about 150 kB of pickle.
MOST_STEPS = 1 << 20  # The released model.pth takes about 25,000.
TALLEST = 1 << 16  # Values on the stack; torch puts a thousand entries of a dict there.
MOST_MARKS = 64
DEEPEST = 32  # Containers inside one another; the reference's files have four.
LONGEST_INTEGER = 16  # Bytes.

_CONTAINERS = (dict, list, tuple)
_KEYS = (str, int, float, bool, type(None))
_CONSTANTS = {b"N": None, b"\x88": True, b"\x89": False}
_FIXED = {b"K": "<B", b"M": "<H", b"J": "<i", b"G": ">d"}
_TEXTS = {b"X": "<I", b"\x8c": "<B"}  # BINUNICODE, SHORT_BINUNICODE
_BYTES = {b"B": "<I", b"C": "<B", b"T": "<i", b"U": "<B"}  # BINBYTES, BINSTRING, and short ones
_TUPLES = {b"\x85": 1, b"\x86": 2, b"\x87": 3}


def read_pickle(data: bytes, start: int = 0) -> tuple[Any, int]:
    """The value that the pickle at `start` describes, and where the next one begins."""
    machine = _Machine(data, start)
    value = machine.run()
    _check_depth(value)
    return value, machine.at


def _check_depth(value: object) -> None:
    """Goes down level by level, each container once, however often it is mentioned."""
    level, seen = [value], {id(value)}
    for _ in range(DEEPEST):
        below = [item for holder in level for item in _inside(holder) if id(item) not in seen]
        level = list({id(item): item for item in below}.values())
        if not level:
            return
        seen |= {id(item) for item in level}
    raise RefusedError(f"its pickle nests containers more than {DEEPEST} deep")


def _inside(holder: Any) -> Iterator[object]:
    """The containers in a container."""
    items = holder.values() if isinstance(holder, dict) else holder
    if isinstance(holder, _CONTAINERS):
        yield from (item for item in items if isinstance(item, _CONTAINERS))


class _Machine:
    """One pickle's stack and memo, and the instructions that work on them."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.at = start
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        """The stacks under each open mark."""
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Follows the instructions to the stop, within the bounds above."""
        for _ in range(MOST_STEPS):
            code = self.take(1)
            if code == b".":
                return self.pop()
            self.step(code)
            if len(self.stack) > TALLEST or len(self.below) > MOST_MARKS:
                raise RefusedError("its pickle piles up more than any file of weights does")
        raise RefusedError(f"its pickle has more than {MOST_STEPS} instructions")

    def step(self, code: bytes) -> None:
        """Does one instruction."""
        if code in _CONSTANTS:
            self.stack.append(_CONSTANTS[code])
        elif code in _FIXED:
            self.stack.append(self.number(_FIXED[code]))
        elif code in _TEXTS:
            self.stack.append(self.text(self.take(self.number(_TEXTS[code]))))
        elif code in _BYTES:
            self.stack.append(self.take(self.number(_BYTES[code])))
        elif code in _TUPLES:
            count = _TUPLES[code]
            self.stack.append(tuple(reversed([self.pop() for _ in range(count)])))
        elif code in _INSTRUCTIONS:
            _INSTRUCTIONS[code](self)
        else:
            raise RefusedError(f"its pickle has the instruction {code!r}, which torch never writes")

    def take(self, count: int) -> bytes:
        """The next bytes of the program."""
        taken = self.data[self.at : self.at + count] if count >= 0 else b""
        if count < 0 or len(taken) < count:
            raise RefusedError("its pickle breaks off")
        self.at += count
        return taken

    def number(self, form: str) -> Any:
        """A number stored in the program."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self, raw: bytes) -> str:
        """A text stored in the program."""
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise RefusedError("its pickle holds a text that is not UTF-8") from None

    def line(self) -> str:
        """The program up to the end of the line."""
        end = self.data.find(b"\n", self.at, self.at + 1000)
        if end < 0:
            raise RefusedError("its pickle breaks off in a name")
        raw = self.take(end + 1 - self.at)
        return self.text(raw[:-1])

    def push(self, value: object) -> None:
        """On top of the stack that is open by then: working out the value may have changed it."""
        self.stack.append(value)

    def pop(self) -> Any:
        """The top of the stack."""
        if not self.stack:
            raise RefusedError("its pickle takes from an empty stack")
        return self.stack.pop()

    def top(self) -> Any:
        """The top of the stack, left there."""
        if not self.stack:
            raise RefusedError("its pickle looks at an empty stack")
        return self.stack[-1]

    def mark(self) -> None:
        """Opens a pile."""
        self.below.append(self.stack)
        self.stack = []

    def pile(self) -> list[Any]:
        """Everything since the last mark."""
        if not self.below:
            raise RefusedError("its pickle closes what it never opened")
        items, self.stack = self.stack, self.below.pop()
        return items

    def put(self, index: int) -> None:
        """Remembers the top of the stack."""
        self.memo[index] = self.top()

    def get(self, index: int) -> None:
        """Puts what was remembered on the stack again."""
        if index not in self.memo:
            raise RefusedError("its pickle recalls what it never stored")
        self.stack.append(self.memo[index])

    def integer(self) -> None:
        """LONG1: up to 16 bytes."""
        size = self.number("<B")
        if size > LONGEST_INTEGER:
            raise RefusedError(f"its pickle holds an integer of {size} bytes")
        self.stack.append(int.from_bytes(self.take(size), "little", signed=True))

    def append(self, items: list[Any]) -> None:
        """Adds to a list or a set; what a class of the reference holds is not kept."""
        target = self.top()
        if isinstance(target, list):
            target.extend(items)
        elif not isinstance(target, Inert):
            raise RefusedError("its pickle appends to what is no list")

    def set_items(self, items: list[Any]) -> None:
        """Adds to a dict."""
        target = self.top()
        if isinstance(target, Inert):
            return
        if not isinstance(target, dict) or len(items) % 2:
            raise RefusedError("its pickle sets items of what is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, _KEYS):
                raise RefusedError("its pickle has a dict with keys that are no names")
            if key in target:
                raise RefusedError(f"its pickle has two entries of the name {str(key)[:200]!r}")
            target[key] = value

    def build(self) -> None:
        """The state of a class of the reference, or the notes torch pins to a dict: not kept."""
        self.pop()
        if not isinstance(self.top(), Inert | dict):
            raise RefusedError("its pickle sets the state of what is no object")

    def reduce(self) -> None:
        """What torch calls to make a tensor; here it makes a record."""
        arguments, function = self.pop(), self.pop()
        self.stack.append(call(function, arguments))

    def find(self) -> None:
        """STACK_GLOBAL: a name out of two texts."""
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise RefusedError("its pickle builds a name out of what is no text")
        self.stack.append(look_up(module, name))

    def protocol(self) -> None:
        """The version of the instructions."""
        version = self.number("<B")
        if version > 5:
            raise RefusedError(f"its pickle is of version {version}")

    def pairs(self) -> list[Any]:
        """One key and its value."""
        value, key = self.pop(), self.pop()
        return [key, value]


_INSTRUCTIONS: dict[bytes, Callable[[_Machine], object]] = {
    b"\x80": _Machine.protocol,
    b"\x95": lambda m: m.take(8),  # FRAME: a hint for reading ahead.
    b"}": lambda m: m.push({}),
    b"]": lambda m: m.push([]),
    b"\x8f": lambda m: m.push([]),  # EMPTY_SET, read as a list: sets would hash.
    b")": lambda m: m.push(()),
    b"(": _Machine.mark,
    b"t": lambda m: m.push(tuple(m.pile())),
    b"a": lambda m: m.append([m.pop()]),
    b"e": lambda m: m.append(m.pile()),
    b"\x90": lambda m: m.append(m.pile()),  # ADDITEMS
    b"s": lambda m: m.set_items(m.pairs()),
    b"u": lambda m: m.set_items(m.pile()),
    b"q": lambda m: m.put(m.number("<B")),
    b"r": lambda m: m.put(m.number("<I")),
    b"\x94": lambda m: m.put(len(m.memo)),
    b"h": lambda m: m.get(m.number("<B")),
    b"j": lambda m: m.get(m.number("<I")),
    b"\x8a": _Machine.integer,
    b"c": lambda m: m.push(look_up(m.line(), m.line())),
    b"\x93": _Machine.find,
    b"R": _Machine.reduce,
    b"\x81": _Machine.reduce,  # NEWOBJ
    b"b": _Machine.build,
    b"Q": lambda m: m.push(storage_of(m.pop())),
}
