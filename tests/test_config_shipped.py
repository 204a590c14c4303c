"""What is shipped agrees with the settings: YAML files, documents, and the code that reads them."""

import ast
import re
from pathlib import Path

import pytest

from myxtts.config import (
    FLAGS,
    GUIDE_KEYS,
    PRESETS,
    Config,
    load_config,
)
from myxtts.config.problems import wants, written
from myxtts.config.settings import leaves, sections

ROOT = Path(__file__).parents[1]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.yaml"


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/*.yaml")), ids=lambda path: path.name)
def test_shipped_yaml_loads(path: Path) -> None:
    assert isinstance(load_config(path), Config)


def test_commented_lines_of_the_main_config_are_the_defaults(file: Path) -> None:
    text = (ROOT / "configs/config.yaml").read_text(encoding="utf-8")
    assert load_config(ROOT / "configs/config.yaml") == Config()
    file.write_text(re.sub(r"^  # (?=\w+: )", "  ", text, flags=re.MULTILINE))
    assert load_config(file) == Config()
    assert len(re.findall(r"^  \w+: ", file.read_text(), flags=re.MULTILINE)) > 15


def test_documented_settings_are_the_real_ones() -> None:
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    rows = [
        f"| `{key}` | {written(field.default)} | {wants(field)} | {field.description} |"
        for key, field in leaves().items()
    ]
    found = [line for line in text.splitlines() if re.match(r"\| `[a-z_]+\.[a-z_.]+` \|", line)]
    assert found == rows, "docs/configuration.md needs these rows:\n" + "\n".join(rows)


def test_documented_presets_are_the_real_ones() -> None:
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    rows = [
        f"| `{name}` | " + ", ".join(f"`{key}: {written(v)}`" for key, v in values.items()) + " |"
        for name, values in PRESETS.items()
    ]
    assert [row for row in rows if row not in text] == []


def test_guide_map_names_every_flag_and_refused_key() -> None:
    text = (ROOT / "docs/from-the-guides.md").read_text(encoding="utf-8")
    names = [*FLAGS.values(), "--enable-static-shapes", *GUIDE_KEYS]
    assert [name for name in names if f"`{name}" not in text] == []


def test_guide_map_names_only_python_names_that_exist() -> None:
    text = (ROOT / "docs/from-the-guides.md").read_text(encoding="utf-8")
    for name in re.findall(r"`myxtts\.([\w.]+)`", text):
        *module, last = name.split(".")
        place = (ROOT / "myxtts").joinpath(*module)
        sources = [*place.glob("*.py"), *place.parent.glob(f"{place.name}.py")]
        pattern = rf"^(?:def|class) {last}\b"
        assert any(re.search(pattern, path.read_text(), re.MULTILINE) for path in sources), name


def _annotated(tree: ast.AST) -> dict[str, set[object]]:
    """The settings classes that a module's names are annotated with."""
    classes: dict[str, object] = {kind.__name__: kind for kind in sections().values()}
    found: dict[str, set[object]] = {}
    for node in ast.walk(tree):
        target = node.arg if isinstance(node, ast.arg) else getattr(node, "target", None)
        name = target if isinstance(target, str) else getattr(target, "id", "")
        annotation = getattr(node, "annotation", None)
        parts = ast.walk(annotation) if annotation else ()  # Of a union each one.
        kinds = {getattr(part, "id", "") for part in parts} & classes.keys()
        found.setdefault(name, set()).update(classes[kind] for kind in kinds)
    return found


def _read_in(tree: ast.AST) -> set[str]:
    """Settings whose attribute is read from something named or annotated as their section."""
    annotated = _annotated(tree)
    owners = {key: (key.rpartition(".")[2], kind) for key, kind in sections().items()}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            base = getattr(node.value, "attr", getattr(node.value, "id", "")).lstrip("_")
            for section, (name, kind) in owners.items():
                if base == name or kind in annotated.get(base, set()):
                    found.add(f"{section}.{node.attr}")
    return found


def settings_read() -> set[str]:
    modules = (ROOT / "myxtts").rglob("*.py")
    trees = [ast.parse(path.read_text()) for path in modules if path.parent.name != "config"]
    return set().union(*map(_read_in, trees)) & set(leaves())


READ_BY_CONFIG = {"model.size"}
"""Where the numbers of the other settings come from: nothing else asks for it."""


def test_every_setting_is_read() -> None:
    assert set(leaves()) - settings_read() == READ_BY_CONFIG


def test_a_setting_counts_as_read_only_from_its_own_section() -> None:
    source = "def f(sizes: GptConfig, network: object) -> None:\n    sizes.width, network.heads\n"
    assert _read_in(ast.parse(source)) == {"model.gpt.width"}
    assert "model.codec.codes" in _read_in(ast.parse("config.model.codec.codes"))


def test_config_imports_neither_tensorflow_nor_the_rest_of_the_package() -> None:
    modules = (ROOT / "myxtts/config").glob("*.py")
    lines = [line for path in modules for line in path.read_text().splitlines()]
    ours = {
        line.split()[1] for line in lines if re.match(r"(from|import) (myxtts|tensor|keras)", line)
    }
    assert all(name == "myxtts.errors" or name.startswith("myxtts.config") for name in ours)
