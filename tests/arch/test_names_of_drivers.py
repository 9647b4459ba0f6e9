"""What programs and tests use of the drivers' modules exists. mypy skips the drivers, so it does not tell."""

import ast
import pathlib
import subprocess
from collections.abc import Iterator

from tests.shared.checkout import ROOT

PACKAGE = "notifier_kafka_drivers"


def _files() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / path for path in listed.stdout.split()]


def _driver_module(imported: ast.ImportFrom, name: str) -> pathlib.Path | None:
    if imported.level or not (imported.module or "").startswith(PACKAGE):
        return None
    path = pathlib.Path(*(imported.module or "").split(".")[1:], f"{name}.py")
    return found if (found := ROOT / "drivers" / path).exists() else None


def _defined(module: pathlib.Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).partition(".")[0] for each in node.names}
    return found


def _unknown(file: pathlib.Path) -> Iterator[str]:
    tree = ast.parse(file.read_text("utf-8"))
    bound: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                if module := _driver_module(node, each.name):
                    # Two functions may import different modules by one name.
                    name = each.asname or each.name
                    bound[name] = bound.get(name, set()) | _defined(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            known = bound.get(node.value.id)
            if known is not None and not node.attr.startswith("__") and node.attr not in known:
                yield f"{file.relative_to(ROOT)}:{node.lineno}: {node.value.id}.{node.attr}"


def test_each_name_that_is_used_of_a_drivers_module_is_there() -> None:
    assert [each for file in _files() for each in _unknown(file)] == []
