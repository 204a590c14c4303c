"""The words of a configuration error: what was given, what is wanted, which key was meant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from myxtts.config.base import LARGEST, Settings
from myxtts.config.yaml_text import plain
from myxtts.errors import UserError

LONGEST_SHOWN = 60  # Characters of a key or a value that a message repeats.
NEAR = 0.6  # difflib's own cutoff for a close match.


class ConfigError(UserError):
    """Settings that cannot be used, with every problem that was found."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems), "docs/configuration.md lists every key and preset")
        self.problems = tuple(problems)


def one_line(text: str) -> str:
    """Text from outside without line breaks and terminal codes."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def shown(text: str) -> str:
    """Text from outside, short and on one line."""
    line = one_line(text)
    return line if len(line) <= LONGEST_SHOWN else line[: LONGEST_SHOWN - 1] + "…"


def written(value: object) -> str:
    """A value as it would stand in a YAML file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(written(item) for item in value) + "]"
    return one_line(str(value))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like this one, by the whole dotted path or by its last part."""
    name = name.lower()[-2 * LONGEST_SHOWN :]  # difflib takes quadratic time.
    last = name.rsplit(".", 1)[-1]

    def likeness(candidate: str) -> tuple[float, int, float]:
        whole = SequenceMatcher(None, name, candidate).ratio()
        tail = SequenceMatcher(None, last, candidate.rsplit(".", 1)[-1]).ratio()
        return max(whole, tail), -candidate.count("."), whole  # Of equals the shorter path.

    best = max(known, key=likeness)
    return best if likeness(best)[0] >= NEAR else None


def wants(field: FieldInfo) -> str:
    """What a field takes, in words."""
    return _wants(_alone(field).json_schema())


def fault(field: FieldInfo, value: object, template: str) -> str | None:
    """What is wrong with a value, if anything; `template` shows how one is written there."""
    if _takes(field, value):
        return None
    better = _better(field, value)
    advice = "leave it out" if better is None else "write " + template.format(value=better)
    return f"got {_got(value)}, takes {wants(field)}; {advice}"


def _got(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"the text '{shown(value)}'"
    if isinstance(value, int) and value > LARGEST:
        return f"{written(value)}, too large a number"
    text = shown(written(value))
    return f"the list {text}" if isinstance(value, list | tuple) else text


def _alone(field: FieldInfo) -> TypeAdapter[Any]:
    kind: Any = Annotated[field.annotation, field]
    return TypeAdapter(kind, config=Settings.model_config)


def _takes(field: FieldInfo, value: object) -> bool:
    try:
        _alone(field).validate_python(value)
    except ValidationError:
        return False
    return True


def _better(field: FieldInfo, value: object) -> str | None:
    """The value that was probably meant, else the default."""
    for meant in _readings(field, value):
        if not _takes(field, meant):
            continue
        quoted = isinstance(meant, str) and plain(meant) != meant
        return f'"{shown(str(meant))}"' if quoted else written(meant)
    return None if field.default is None else written(field.default)


def _readings(field: FieldInfo, value: object) -> Iterator[object]:
    """Other ways to take a value, the likeliest first."""
    if isinstance(value, str):
        words = {"yes": True, "on": True, "no": False, "off": False}
        word = value.strip().lower()
        if len(word) <= LONGEST_SHOWN:
            yield plain(word)
        yield words.get(word, word)
        if choices := _choices(_alone(field).json_schema()):
            yield nearest(word, choices)
    elif isinstance(value, float) and value.is_integer():
        yield int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)


def _choices(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("anyOf", [schema])
    return [str(word) for kind in kinds for word in kind.get("enum", [kind.get("const")]) if word]


def _wants(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        kinds = [_wants(kind) for kind in schema["anyOf"] if kind["type"] != "null"]
        return " or ".join(kinds)
    if words := _choices(schema):
        return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    kind = schema["type"]
    if kind == "array":
        example = schema.get("examples", [schema.get("default", [0, 1])])[0]
        return f"a list such as {written(example)}"
    if kind in {"integer", "number"}:
        return ("a whole number" if kind == "integer" else "a number") + _range(schema)
    if kind == "string":
        return _wanted_text(schema)
    return "true or false"


def _wanted_text(schema: Mapping[str, Any]) -> str:
    if "examples" in schema:
        return f"a text such as {schema['examples'][0]}"
    return "a path" if schema.get("format") == "path" else "numbers with commas"


def _range(schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if high == LARGEST:
        return f" of {low} or more"
    start = f" from {low}" if low is not None else f" above {above}" if above is not None else ""
    if high is not None:
        return f"{start} to {high}"
    return f"{start} and below {below}" if below is not None else start
