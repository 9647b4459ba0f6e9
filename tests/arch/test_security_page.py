"""What SECURITY.md names is there: files, tests in them, and the environments that it has run."""

import ast
import configparser
import re
from collections.abc import Iterator

from tests.shared.checkout import ROOT

PAGE = (ROOT / "SECURITY.md").read_text()
FILE = re.compile(r"((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:md|ini|cfg|txt))(?:::(\w+))?")


def named() -> Iterator[tuple[str, str]]:
    """Yield files with a test or none; ``::test`` alone is of the file before."""
    file = ""
    for quoted in re.findall(r"`([^`]+)`|\]\(([^)]+)\)", PAGE):
        text = "".join(quoted)
        if text.startswith("::"):
            yield file, text[2:]
        elif found := FILE.fullmatch(text):
            file = found[1]
            yield file, found[2] or ""


def test_each_file_and_each_test_that_the_page_names_is_there() -> None:
    found = set(named())
    assert len(found) > 40
    assert any(test for _, test in found)
    for file, test in found:
        path = ROOT / file
        assert path.exists(), file
        if test:
            nodes = ast.walk(ast.parse(path.read_text()))
            assert test in {n.name for n in nodes if isinstance(n, ast.FunctionDef)}, f"{file}::{test}"


def test_what_the_page_says_is_run_is_in_tox_ini() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    for name in re.findall(r"`tox -e ([\w-]+)`", PAGE):
        assert f"testenv:{name}" in tox
    (bandit,) = re.findall(r"`(bandit -[^`]+)`", PAGE)
    assert bandit in tox["testenv:lint"]["commands"].splitlines()
