"""What every settings class is made of: the strict base, the kinds of values, the conflict."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

LARGEST = 2**31 - 1  # TensorFlow counts shapes and seeds in 32 bits.


class ConflictError(ValueError):
    """Settings that are fine one by one and cannot stand together; `keys` are their names."""

    def __init__(self, what: str, write: str, *keys: str) -> None:
        super().__init__(f"{what}; {write}")
        self.keys = keys


class Settings(BaseModel):
    """Frozen, and closed to unknown keys; True is not 1 and "16" is not 16."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


def _to_path(value: object) -> object:
    if not isinstance(value, str | Path):
        return value
    text = str(value)
    if not text or "\0" in text:  # Path("") would be the working directory, which nobody means.
        raise ValueError("names no file")
    text.encode()  # Raises a ValueError for a name that no YAML file could hold.
    if not re.match(r"~(/|$)", text):
        return Path(text)
    # A shell expands ~ on the command line; in a YAML file nobody else would.
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # A container's user may have no home.
        raise ValueError("no home folder") from error


def to_tuple(value: object) -> object:
    """YAML knows lists only."""
    return tuple(value) if isinstance(value, list) else value


def _to_indices(value: object) -> object:
    """Reads 1, [1, 2] and "1,2" alike, because a command line knows only text."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,9}\s*(,\s*-?[0-9]{1,9}\s*)*", value):
        return tuple(int(index) for index in value.split(","))
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    return to_tuple(value)


def _to_words(value: object) -> object:
    """Reads ["a", "b"] and "a,b" alike."""
    return tuple(value.split(",")) if isinstance(value, str) else to_tuple(value)


Count = Annotated[int, Field(ge=1, le=LARGEST)]
Counts = Annotated[
    tuple[Count, ...],
    Field(min_length=1, max_length=16),
    BeforeValidator(to_tuple, json_schema_input_type=list[Count]),
]
Folder = Annotated[Path, BeforeValidator(_to_path, json_schema_input_type=Path)]
GpuIndices = Annotated[
    tuple[int, ...],
    Field(min_length=1),
    BeforeValidator(_to_indices, json_schema_input_type=int | list[int] | str),
]
Pattern = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\w.*?/-]+$")]
Patterns = Annotated[
    tuple[Pattern, ...],
    Field(max_length=256, examples=[["conditioning/*", "block_0/*"]]),
    BeforeValidator(_to_words, json_schema_input_type=list[Pattern]),
]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[a-z]{2,4})?$", examples=["en"])]
MemoryLimit = Count | Literal["auto"]
PlugIn = Annotated[
    str, Field(pattern=r"^[\w.]+:\w+$", max_length=200, examples=["my_module:add_vowels"])
]
