"""The house rules that a reader counts on, held over the whole source."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "myxtts"

# From the top down; a module imports only from rows below its own.
ROWS = (
    ("cli",),
    ("validate", "profile"),
    ("rehearsal",),
    ("train",),
    ("stages",),
    ("learner", "mel_levels"),
    ("importer",),
    ("model_folder",),
    ("gpt",),
    ("conditioning", "codec", "vocoder", "speaker"),
    ("layers", "weights"),
    ("optimizer", "schedule"),
    ("clips", "noise", "features"),
    ("cache",),
    ("run", "checkpoint"),
    ("pipeline",),
    ("reader",),
    ("plan",),
    ("demo_corpus",),
    ("prepare",),
    ("manifest", "decode"),
    ("text",),
    ("languages",),
    ("batch", "audio"),
    ("view",),
    ("telemetry",),
    ("devices",),
    ("config",),
    ("errors",),
)
RANK = {name: depth for depth, names in enumerate(ROWS) for name in names}


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def module_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def uses(path: Path, name: str) -> list[int]:
    nodes = (node for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute))
    return [node.lineno for node in nodes if dotted(node) == name]


def calls(path: Path, name: str) -> list[int]:
    nodes = (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call))
    return [node.lineno for node in nodes if dotted(node.func) == name]


@pytest.mark.parametrize("path", sources("myxtts"), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    here = module_of(path)
    if here == "__init__":
        assert not [name for name in imported(path) if name.startswith("myxtts.")]
        return
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "myxtts" and len(parts) > 1 and parts[1] != here:
            assert RANK[here] < RANK[parts[1]], f"{here} may not import {parts[1]}"


def test_only_devices_touches_tf_config() -> None:
    outside = [path for path in sources("myxtts", "benchmarks") if module_of_any(path) != "devices"]
    names = ("tf.config", "tensorflow.config", "keras.config", "context.context")
    touching = [f"{p}:{line}" for p in outside for name in names for line in uses(p, name)]
    importing = [str(p) for p in outside for i in imported(p) if i.startswith("tensorflow.config")]
    assert touching + importing == []


def module_of_any(path: Path) -> str:
    return module_of(path) if path.is_relative_to(PACKAGE) else path.stem


def test_only_program_makes_a_tf_function() -> None:
    # A Program looks through its own graph and refuses a second device, so that no
    # tf.function sees two devices if there is no other way to make one.
    makers = [path for path in sources("myxtts", "benchmarks") if uses(path, "tf.function")]
    assert [path.name for path in makers] == ["program.py"]


def test_only_the_stages_move_tensors() -> None:
    movers = [path for path in sources("myxtts", "benchmarks") if uses(path, "tf.identity")]
    assert [path.name for path in movers] == ["stages.py"]


def test_only_the_ring_owns_a_thread() -> None:
    owners = [path for path in sources("myxtts") if calls(path, "threading.Thread")]
    assert [path.name for path in owners] == ["ring.py"]


def test_every_test_asserts_something() -> None:
    silent = [
        f"{path.name}:{node.lineno} {node.name}"
        for path in sources("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if not any(asserts(inner) for inner in ast.walk(node))
    ]
    assert silent == []


def asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    called = dotted(node.func) if isinstance(node, ast.Call) else ""
    return called in ("pytest.raises", "pytest.fail") or called.startswith("np.testing.assert_")


def test_only_the_ring_catches_everything_and_it_raises_it_again() -> None:
    broad = [
        path.name
        for path in sources("myxtts", "benchmarks", "tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or dotted(node.type) in ("Exception", "BaseException"))
    ]
    assert broad == ["ring.py"]


def test_no_module_is_longer_than_400_lines_and_no_function_than_50() -> None:
    long = []
    for path in sources("myxtts", "benchmarks"):
        if path.read_text(encoding="utf-8").count("\n") > 400:
            long.append(str(path))
        functions = (n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef))
        long += [f"{path} {f.name}" for f in functions if (f.end_lineno or 0) - f.lineno >= 50]
    assert long == []


def test_the_guides_scripts_only_call_a_command() -> None:
    scripts = [*ROOT.glob("*.py"), *sources("utilities")]
    bodies = [[type(node).__name__ for node in tree(path).body] for path in scripts]
    assert len(scripts) == 5
    assert all(body == ["Expr", "Import", "Try", "Expr"] for body in bodies)


def test_rows_name_every_module_once() -> None:
    modules = {module_of(path) for path in sources("myxtts")} - {"__init__"}
    assert modules == set(RANK)
    assert all(not set(a) & set(b) for a, b in pairwise(ROWS))
