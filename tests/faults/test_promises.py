"""Every test that the page of promises names exists."""

import ast
import pathlib
import re

from tests.shared.checkout import ROOT

PAGE = ROOT / "docs" / "promises.md"
# The judge's own, and this.
NO_CASES = {
    "test_audit.py",
    "test_checker.py",
    "test_fuzz.py",
    "test_saboteur_of_the_fence.py",
    "test_timings.py",
    pathlib.Path(__file__).name,
}


def named() -> set[tuple[str, str]]:
    return set(re.findall(r"`([\w/.-]+\.py)(?:::(\w+))?`", PAGE.read_text()))


def functions_of(path: pathlib.Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {
        node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_each_test_that_the_page_names_is_there() -> None:
    found = named()
    assert len(found) > 30
    for file, test in found:
        assert (ROOT / file).is_file(), file
        assert not test or test in functions_of(ROOT / file), f"{file}::{test}"


def test_each_test_that_the_page_names_is_a_link_to_its_file() -> None:
    text = PAGE.read_text()
    links = re.findall(r"\[`([\w/.-]+\.py)(?:::\w+)?`\]\(([^)]+)\)", text)
    assert len(links) == len(re.findall(r"\.py(?:::\w+)?`", text))
    for file, target in links:
        assert (PAGE.parent / target).resolve() == ROOT / file


def test_each_case_is_on_the_page() -> None:
    cases = {
        (path.relative_to(ROOT).as_posix(), test)
        for path in (ROOT / "tests").glob("**/faults/test_*.py")
        if path.name not in NO_CASES
        for test in functions_of(path)
    }
    assert cases <= named(), cases - named()
