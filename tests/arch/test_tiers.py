"""The default tests and the long ones are all tests, CI runs both, and each promise has a test in one."""

import configparser
import functools
import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.shared.checkout import ROOT

PROMISES = ROOT / "docs" / "promises.md"
# Each test, and whether it has the marker: all that both selections go by.
COLLECT = """
import json, sys, pytest

class Seen:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        tests = {item.nodeid: item.get_closest_marker("long") is not None for item in items}
        print("TESTS", json.dumps(tests))

sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider"], plugins=[Seen()]))
"""


@functools.cache
def _is_long() -> dict[str, bool]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-c", COLLECT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("TESTS ")]
    found: dict[str, bool] = json.loads(line.removeprefix("TESTS "))
    return found


def _selection(environment: str) -> str:
    """Return what an environment of tox selects by: the marker, and nothing else."""
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    [line] = [line for line in tox[environment]["commands"].splitlines() if line and not line.startswith("#")]
    command = shlex.split(line.replace("{posargs}", ""))
    assert command[:3] == ["python", "-m", "pytest"]
    options = dict(zip(command[3::2], command[4::2], strict=True))
    assert options.keys() == {"-n", "--durations", "-m"}
    return options["-m"]


def test_default_and_long_together_are_all_tests() -> None:
    assert (_selection("testenv"), _selection("testenv:long")) == ("not long", "long")

    tests = _is_long()
    assert {is_long for test, is_long in tests.items() if test.startswith("tests/long/")} == {True}
    assert sum(tests.values()) > 100
    assert len(tests) - sum(tests.values()) > 1_000


def test_ci_runs_both_tiers() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()

    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines  # so that the first that fails ends it
    [default] = re.findall(r"^python3 -m venv .*tox$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [line for line in lines if "bin/tox" in line] == [
        default,
        ".venv/bin/tox -e long",
        'if [ -n "$others" ]; then .venv/bin/tox -e "$others"; fi',
    ]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize(
    ("harm", "test"),
    [
        ("SIGKILL", "tests/journey/test_processes.py::"),
        ("full disk", "tests/faults/test_full_disks.py::"),
        ("reconnect", "tests/kafka/test_listener.py::test_a_broker_that_restarts"),
    ],
)
def test_each_kind_of_harm_is_in_the_default_tests(harm: str, test: str) -> None:
    assert [each for each, is_long in _is_long().items() if each.startswith(test) and not is_long], harm


def test_each_promise_has_its_test() -> None:
    named = set(re.findall(r"`(tests/[\w/.-]+\.py)(?:::(\w+))?`", PROMISES.read_text()))
    functions = {each.partition("[")[0] for each in _is_long()}

    assert len(named) > 100
    for file, test in named:
        of_file = {each for each in functions if each.startswith(f"{file}::")}
        assert any(each.endswith(f"::{test}") for each in of_file) if test else of_file, f"{file}::{test}"
