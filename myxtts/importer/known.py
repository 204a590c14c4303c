"""The names that a torch file's pickle may mention, and what stands for each here."""

from dataclasses import dataclass
from typing import Any

from myxtts.errors import UserError

STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
"""torch's names for arrays of one kind of number."""

ITEM_BYTES = {
    "float64": 8,
    "int64": 8,
    "float32": 4,
    "int32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}

_REFERENCE = ("TTS", "coqpit", "trainer")
"""Packages whose classes lie in model.pth beside the weights."""
_EMPTY = {
    *("torch.device", "torch.Size", "torch.dtype", "numpy.dtype", "_codecs.encode"),
    *("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar"),
    *("copyreg._reconstructor", "copy_reg._reconstructor", "builtins.object"),
    *("__builtin__.object", "__builtin__.set", "builtins.set", "collections.defaultdict"),
    *("pathlib.Path", "pathlib.PosixPath", "pathlib.WindowsPath"),
    *(f"torch.{kind}" for kind in ITEM_BYTES),
}
"""What a trainer's checkpoint holds of settings and results; nobody reads it here."""
_REBUILD = {"_rebuild_tensor": 4, "_rebuild_tensor_v2": 6}
"""torch's functions that make a tensor, and how many arguments they take at least."""
_PARAMETERS = {"_rebuild_parameter", "_rebuild_parameter_with_state"}
_MOST_AXES = 8


class RefusedError(UserError):
    """A file holds what no file of weights needs, or is damaged; nothing of it was run."""


@dataclass(frozen=True)
class Global:
    """A name in a pickle that stands for torch's function or class."""

    module: str
    name: str


class Inert:
    """Stands for a class of the reference, and for its objects; holds nothing."""


@dataclass(frozen=True)
class Storage:
    """An array of the file that tensors look into; `key` names its bytes."""

    kind: str
    key: str
    count: int


@dataclass(frozen=True)
class Tensor:
    """Where a tensor's numbers lie in its storage; places and strides count numbers."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def kind(self) -> str:
        """What its numbers are, such as float32."""
        return self.storage.kind

    @property
    def count(self) -> int:
        """How many numbers it has."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def span(self) -> int:
        """From its first number in the storage to its last, both counted."""
        steps = zip(self.shape, self.stride, strict=True)
        return sum((length - 1) * step for length, step in steps) + 1 if self.count else 0


def look_up(module: str, name: str) -> object:
    """What stands for a name, or the refusal of it."""
    path = f"{module}.{name}"
    if module in ("torch", "torch.cuda") and name in STORAGES:
        return Global("torch", name)
    if module == "torch._utils" and (name in _REBUILD or name in _PARAMETERS):
        return Global(module, name)
    if path == "collections.OrderedDict":
        return Global(module, name)
    if path in _EMPTY or module.partition(".")[0] in _REFERENCE:
        return Inert()
    raise RefusedError(f"its pickle asks for {path[:200]!r}, which no file of weights needs")


def call(function: object, arguments: object) -> object:
    """What torch's own call would have made, as a record."""
    if isinstance(function, Inert):
        return function
    if not isinstance(function, Global) or not isinstance(arguments, tuple):
        raise RefusedError("its pickle calls what is no function")
    if function.name in _REBUILD and len(arguments) >= _REBUILD[function.name]:
        return _tensor(*arguments[:4])
    if function.name in _PARAMETERS and arguments and isinstance(arguments[0], Tensor):
        return arguments[0]
    if function.name == "OrderedDict" and arguments in ((), ([],)):
        return {}
    raise RefusedError(f"its pickle calls {function.name} in a way that torch does not")


def storage_of(address: object) -> Storage:
    """The storage that a pickle points at: torch's five fields, and a sixth in old files."""
    match address:
        case ("storage", Global("torch", name), str(key), str(), int(count)) | (
            "storage",
            Global("torch", name),
            str(key),
            str(),
            int(count),
            None,
        ) if name in STORAGES and _is_count(count):
            return Storage(STORAGES[name], key, count)
    raise RefusedError("its pickle points at a storage in a way that torch does not")


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any) -> Tensor:
    if not isinstance(storage, Storage) or not _is_count(offset):
        raise RefusedError("its pickle has a tensor without a storage or a place in it")
    for name, numbers in (("shape", shape), ("stride", stride)):
        good = isinstance(numbers, tuple | list) and all(_is_count(n) for n in numbers)
        if not good or len(numbers) > _MOST_AXES:
            raise RefusedError(f"its pickle has a tensor of an impossible {name}: {_told(numbers)}")
    if len(shape) != len(stride):
        raise RefusedError(f"a tensor of {len(shape)} axes has {len(stride)} strides")
    tensor = Tensor(storage, offset, tuple(shape), tuple(stride))
    _check_inside(tensor)
    return tensor


def _check_inside(tensor: Tensor) -> None:
    """A tensor may neither leave its storage nor show a number of it twice over."""
    last = sum(
        (length - 1) * step for length, step in zip(tensor.shape, tensor.stride, strict=True)
    )
    count, there = tensor.count, tensor.storage.count
    if count and (count > there or tensor.offset + last >= there):
        raise RefusedError(
            f"a tensor of shape {_told(tensor.shape)}, stride {_told(tensor.stride)} and offset "
            f"{tensor.offset} does not fit its storage of {there} numbers"
        )


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _told(numbers: object) -> str:
    """Short, and without a look into what is no number: it may be nested without end."""
    if not isinstance(numbers, tuple | list):
        return type(numbers).__name__
    shown = [str(n)[:40] if type(n) is int else type(n).__name__ for n in numbers[:_MOST_AXES]]
    return f"[{', '.join(shown)}{', …' if len(numbers) > _MOST_AXES else ''}]"
