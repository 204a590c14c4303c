"""YAML text in and out, with numbers as people write them.

PyYAML speaks YAML 1.1, where `1e-4` is a text and `no` (Norwegian) is false. Here the scalars
are those of YAML 1.2's core schema, and digits may be grouped by underscores.
"""

import re
from collections.abc import Iterator, Mapping

import yaml

Node = yaml.Node
LONGEST_NUMBER = 100  # Characters; Python itself refuses to print integers of some thousands.

_DIGITS = "[0-9]+(?:_[0-9]+)*"
_TAG = "tag:yaml.org,2002:"
MAPPING = _TAG + "map"
_SCALARS = {
    "null": re.compile(r"~|null|Null|NULL|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(rf"[-+]?{_DIGITS}|0o[0-7]+|0x[0-9a-fA-F]+"),
    "float": re.compile(
        rf"[-+]?(?:\.{_DIGITS}|{_DIGITS}(?:\.(?:{_DIGITS})?)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
    "str": re.compile(r"(?s:.*)"),
}


class BadYamlError(ValueError):
    """Text that is not the YAML wanted here; `line` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own name; 1.1's rules are left behind.


class _Dumper(yaml.SafeDumper):
    """Quotes a text that either YAML 1.1 or this reader would take for something else."""

    def write_text(self, text: str) -> yaml.ScalarNode:
        # Line breaks inside quotes fold, also those of Unicode: escapes alone keep them.
        return self.represent_scalar(_TAG + "str", text, style=None if text.isprintable() else '"')

    def write_list(self, items: list[object]) -> yaml.SequenceNode:
        return self.represent_sequence(_TAG + "seq", items, flow_style=True)


_Dumper.add_representer(str, _Dumper.write_text)
_Dumper.add_representer(list, _Dumper.write_list)
for _kind in ("null", "bool", "int", "float"):
    _pattern = re.compile(rf"(?:{_SCALARS[_kind].pattern})\Z")
    _Loader.add_implicit_resolver(_TAG + _kind, _pattern, None)
    _Dumper.add_implicit_resolver(_TAG + _kind, _pattern, None)


def parse(text: str) -> Node | None:
    """The document's root, None where there is none."""
    try:
        return yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        if "\\t" in what:
            what = "a tab stands where only spaces may; write spaces"
        raise BadYamlError(what, mark.line + 1 if mark else 1) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        what = f"the character {error.character:#x} may not stand in YAML"
        raise BadYamlError(what, line) from None
    except RecursionError:
        raise BadYamlError("nested too deeply for a configuration", 1) from None


def line_of(node: Node) -> int:
    """Where a node begins, counted from 1."""
    return int(node.start_mark.line) + 1


def entries(node: yaml.MappingNode) -> Iterator[tuple[str | None, int, Node]]:
    """Each key as it is written (None if it is a list or section), its line and its value."""
    for key, value in node.value:
        yield key.value if isinstance(key, yaml.ScalarNode) else None, line_of(key), value


def value_of(node: Node) -> object:
    """A single value or a flat list of them; anything deeper is no setting."""
    if isinstance(node, yaml.SequenceNode):
        if not all(isinstance(item, yaml.ScalarNode) for item in node.value):
            raise BadYamlError("a list here holds single values only", line_of(node))
        return [_tagged(item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        raise BadYamlError("this key takes a value and has no keys of its own", line_of(node))
    return _tagged(node)


def plain(text: str) -> object:
    """Reads unquoted text, whatever punctuation it holds, as a YAML file would."""
    kind = next(kind for kind, pattern in _SCALARS.items() if pattern.fullmatch(text))
    return _value(kind, text)


def dump(tree: Mapping[str, object]) -> str:
    """Block YAML in the order given, lists on one line."""
    return str(
        yaml.dump(
            tree, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True
        )
    )


def _tagged(node: Node) -> object:
    kind = str(node.tag).removeprefix(_TAG)
    pattern = _SCALARS.get(kind)
    if pattern is None or not pattern.fullmatch(node.value):
        raise BadYamlError(f"the tag {node.tag} is not read here", line_of(node))
    try:
        return _value(kind, node.value)
    except ValueError as error:
        raise BadYamlError(str(error), line_of(node)) from None


def _value(kind: str, text: str) -> object:
    if kind in {"int", "float"} and len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} characters is no setting")
    match kind:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text, 0 if text[:2] in {"0o", "0x"} else 10)
        case "float":
            return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    return text
