"""One `Config` out of its layers: size, preset, file, flags, overrides; each beats those before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from myxtts.config.base import ConflictError
from myxtts.config.guide_keys import FLAGS, GUIDE_KEYS
from myxtts.config.presets import PRESETS, SIZES
from myxtts.config.problems import ConfigError, fault, nearest, one_line, shown, written
from myxtts.config.settings import Config, leaves, sections
from myxtts.config.yaml_text import (
    MAPPING,
    BadYamlError,
    Node,
    dump,
    entries,
    line_of,
    parse,
    plain,
    value_of,
)

LARGEST_FILE = 1 << 16  # Bytes; a configuration has a few thousand.
MOST_PROBLEMS = 100  # A file of another kind would otherwise fill the screen.
LEAVES = leaves()
SECTIONS = sections()
PRESET = "preset"  # Read at every layer, and no setting itself: it only chooses where to start.


@dataclass(frozen=True)
class Entry:
    """A value, the place that gave it, and how a better one is written there."""

    value: object
    where: str
    template: str


Layer = dict[str, Entry]


def load_config(
    file: Path | None = None,
    *,
    preset: str | None = None,
    size: str | None = None,
    flags: Mapping[str, object] = {},
    overrides: Sequence[str] = (),
) -> Config:
    """Reads and checks every layer; raises one ConfigError that names all problems.

    `flags` maps dotted keys to values, None meaning not given; `overrides` are KEY=VALUE texts.
    """
    problems: list[str] = []
    from_file = _read_file(Path(file), problems) if file is not None else {}
    asked = _read_flags({PRESET: preset, "model.size": size, **flags}, problems)
    asked |= _read_overrides(overrides, problems)
    given = from_file | asked
    start = _preset(given.pop(PRESET, None), problems)
    problems += _idle(asked, from_file)
    config = _validated(start | given, problems)
    if config is None:
        more = ["and perhaps more: these fill the list"] if len(problems) >= MOST_PROBLEMS else []
        raise ConfigError(problems + more)
    return config


def to_yaml(config: Config) -> str:
    """Every setting, written so that loading the text gives an equal config."""
    return dump(config.model_dump(mode="json"))


def json_schema() -> dict[str, Any]:
    """A JSON schema of the YAML file, for editors that complete and explain keys."""
    schema = Config.model_json_schema()
    schema["properties"] = {
        PRESET: {"enum": sorted(PRESETS), "description": "Where the settings below start from."},
        **schema["properties"],
    }
    return schema


def differences(a: Config, b: Config) -> list[str]:
    """One line for each setting in which two configs differ: "key: in a → in b"."""
    pairs = ((key, _look_up(a, key), _look_up(b, key)) for key in LEAVES)
    return [f"{key}: {written(one)} → {written(two)}" for key, one, two in pairs if one != two]


def _look_up(config: Config, key: str) -> object:
    found: object = config
    for part in key.split("."):
        found = getattr(found, part)
    return found


def _read_file(file: Path, problems: list[str]) -> Layer:
    name = one_line(str(file))
    try:
        root = parse(_text(file))
    except BadYamlError as error:
        raise ConfigError([f"{name}:{error.line}: {error}"]) from None
    if root is None or _is_empty(root):
        return {}
    if not isinstance(root, yaml.MappingNode):
        what = "the top level must be sections such as `data:` with keys indented under them"
        raise ConfigError([f"{name}:{line_of(root)}: {what}"])
    return _read_section(root, "", name, problems)


def _text(file: Path) -> str:
    name = one_line(str(file))
    try:
        with file.open("rb") as stream:
            raw = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name.
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError([f"{name}: cannot be read ({why}); name a YAML file"]) from None
    if len(raw) > LARGEST_FILE:
        raise ConfigError([f"{name}: larger than {LARGEST_FILE} bytes; name a YAML file"])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError([f"{name}:{line}: not UTF-8; save the file as UTF-8"]) from None


def _is_empty(node: Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and plain(node.value) is None and not node.style


def _read_section(node: yaml.MappingNode, prefix: str, name: str, problems: list[str]) -> Layer:
    found: Layer = {}
    lines: dict[str, int] = {}
    if node.tag != MAPPING:
        section = prefix.rstrip(".") or "top level"
        problems.append(f"{name}:{line_of(node)}: {section}: the tag {shown(node.tag)} is not read")
    for key, line, value in entries(node):
        if len(problems) >= MOST_PROBLEMS:
            break
        where, path = f"{name}:{line}", prefix + (key or "")
        if what := _key_fault(key, path, lines):
            problems.append(f"{where}: {what}")
        elif path in SECTIONS:
            found |= _read_subsection(path, value, where, problems)
        elif path in LEAVES or path == PRESET:
            found |= _read_leaf(path, value, where, problems)
        else:
            problems.append(f"{where}: {shown(path)}: {_unknown(path, _as_text(value))}")
        lines.setdefault(key or "", line)
    return found


def _key_fault(key: str | None, path: str, lines: Mapping[str, int]) -> str | None:
    if not key:
        return "a key is one word; write `word: value`"
    if key in lines:
        return f"{shown(path)}: also on line {lines[key]}; keep one of them"
    if "." in key:
        section, _, last = path.rpartition(".")
        return (
            f"{shown(path)}: dots join keys only on the command line; "
            f"write `{shown(last)}:` under `{shown(section)}:`"
        )
    return None


def _read_subsection(path: str, node: Node, where: str, problems: list[str]) -> Layer:
    name = where.rpartition(":")[0]
    if isinstance(node, yaml.MappingNode):
        return _read_section(node, path + ".", name, problems)
    if not _is_empty(node):  # A section whose keys are all commented out is empty, and fine.
        problems.append(f"{where}: {path}: {_is_section(path)}")
    return {}


def _read_leaf(path: str, node: Node, where: str, problems: list[str]) -> Layer:
    try:
        value = value_of(node)
    except BadYamlError as error:
        name = where.rpartition(":")[0]
        problems.append(f"{name}:{error.line}: {path}: {error}")
        return {}
    template = f"`{path.rpartition('.')[2]}: {{value}}`"
    return _checked(path, Entry(value, where, template), problems)


def _checked(path: str, given: Entry, problems: list[str]) -> Layer:
    # Here and not once at the end, where a later layer would hide an earlier one's fault.
    if path in LEAVES and (what := fault(LEAVES[path], given.value, given.template)):
        problems.append(f"{given.where}: {path}: {what}")
    return {path: given}


def _as_text(node: Node) -> str:
    """What stands behind a refused key, to be repeated under its replacement."""
    try:
        return shown(written(value_of(node)))
    except BadYamlError:
        return "VALUE"


def _read_flags(flags: Mapping[str, object], problems: list[str]) -> Layer:
    found: Layer = {}
    for path, value in flags.items():
        if value is None:
            continue
        flag = FLAGS.get(path, f"the flag for {shown(path)}")
        if path in LEAVES or path == PRESET:
            found |= _checked(path, Entry(value, flag, f"{flag} {{value}}"), problems)
        else:
            problems.append(f"{flag}: {shown(path)}: {_unknown(path, written(value))}")
    return found


def _read_overrides(overrides: Sequence[str], problems: list[str]) -> Layer:
    found: Layer = {}
    for text in overrides:
        path, equals, raw = (part.strip() for part in text.partition("="))
        where = f"override {shown(text)}"
        if not equals or not path:
            problems.append(f"{where}: needs a key and a value; write training.lr=1e-4")
        elif path not in LEAVES and path != PRESET:
            problems.append(f"{where}: {shown(path)}: {_unknown(path, shown(raw))}")
        else:
            try:
                given = Entry(_override_value(raw), where, f"{path}={{value}}")
            except ValueError as error:
                problems.append(f"{where}: {path}: {error}; write {path}=VALUE")
            else:
                found |= _checked(path, given, problems)
    return found


def _override_value(raw: str) -> object:
    # Only lists and quotes are YAML here: a path may hold ` #` or `: `, which YAML would cut.
    if not raw.startswith(("[", '"', "'")):
        return plain(raw)
    root = parse(raw)
    return None if root is None else value_of(root)


def _unknown(path: str, value: str) -> str:
    """What to write instead of a key that no setting has."""
    last = path.rpartition(".")[2]
    by_last = {key.rpartition(".")[2]: refusal for key, refusal in GUIDE_KEYS.items()}
    if path in SECTIONS:
        return _is_section(path)
    if path in GUIDE_KEYS:
        return GUIDE_KEYS[path].sentence(value)
    if last in by_last and not any(leaf.endswith(f".{last}") for leaf in LEAVES):
        return by_last[last].sentence(value)
    if last == "<<":
        return "merge keys are not read; write the keys out"
    likely = nearest(path, [*LEAVES, *SECTIONS, PRESET])
    if likely is not None:
        return f"unknown key; did you mean {likely}?"
    return f"unknown key; the sections are {', '.join(Config.model_fields)}"


def _is_section(path: str) -> str:
    keys = ", ".join(SECTIONS[path].model_fields)
    return f"is a section, not a value; write one of its keys under it: {keys}"


def _preset(given: Entry | None, problems: list[str]) -> Layer:
    if given is None or given.value is None:
        return {}
    if isinstance(given.value, str) and given.value in PRESETS:
        values = PRESETS[given.value].items()
        where = f"{given.where}: preset {given.value}"
        return {key: Entry(value, where, f"`{key}: {{value}}`") for key, value in values}
    likely = nearest(str(given.value), PRESETS)
    advice = f"did you mean {likely}?" if likely else "write one of them"
    problems.append(
        f"{given.where}: preset: no preset is called {written(given.value)}; {advice} "
        f"({', '.join(PRESETS)})"
    )
    return {}


def _idle(asked: Layer, from_file: Layer) -> list[str]:
    """Names a preset or size asked for that the file's own keys leave nothing of.

    So it is with the settings a run writes down for itself, where every key stands.
    """
    found = []
    for key, effect in ((PRESET, _preset_effect(asked)), ("model.size", _size_effect(asked))):
        lost = [leaf for leaf in effect if leaf in from_file]
        unlike = [leaf for leaf in lost if written(from_file[leaf].value) != written(effect[leaf])]
        if unlike and len(lost) == len(effect):
            found.append(
                f"{asked[key].where}: {key}: changes nothing, the file sets its keys otherwise; "
                f"take {', '.join(unlike)} out of the file"
            )
    return found


def _preset_effect(asked: Layer) -> Mapping[str, object]:
    return PRESETS.get(str(asked[PRESET].value), {}) if PRESET in asked else {}


def _size_effect(asked: Layer) -> Mapping[str, object]:
    size = asked["model.size"].value if "model.size" in asked else None
    if size not in list(SIZES):
        return {}
    whole = Config.model_validate({"model": {"size": size}})
    parts = (
        (part, name) for numbers in SIZES.values() for part in numbers for name in numbers[part]
    )
    keys = dict.fromkeys(f"model.{part}.{name}" for part, name in parts)
    return {key: _look_up(whole, key) for key in keys}


def _validated(layer: Layer, problems: list[str]) -> Config | None:
    tree: dict[str, Any] = {}
    for path, given in layer.items():
        *parents, name = path.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[name] = given.value
    try:
        config = Config.model_validate(tree)
    except ValidationError as error:
        problems += _conflicts(error, layer)
        return None
    return None if problems else config


def _conflicts(error: ValidationError, layer: Layer) -> list[str]:
    # Faults of single values were named when their layer was read; what is left are pairs.
    found = []
    for detail in error.errors(include_url=False):
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, ConflictError):
            section = ".".join(str(part) for part in detail["loc"])
            found.append(f"{_places(section, cause.keys, layer)}: {section}: {cause}")
    return found


def _places(section: str, keys: Sequence[str], layer: Layer) -> str:
    paths = [*(f"{section}.{key}" for key in keys), "model.size"]
    places = dict.fromkeys(layer[path].where for path in paths if path in layer)
    return " and ".join(places)
