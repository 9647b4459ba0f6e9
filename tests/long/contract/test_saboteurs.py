"""A test of the contract is useful only if a driver that breaks its clause fails it.

Each saboteur runs the tests in its ``caught_by``, and an honest driver in the same wrapping
runs all of these. The runs spend most of their time waiting, so several run at once.
"""

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import pytest

from notifier_kafka.testing import conformance
from tests.long.contract import saboteurs
from tests.shared.checkout import ROOT

CLASS = """
class Test{name}(conformance.DriverSuite):
    {settings}

    @pytest.fixture
    def url(self, tmp_path):
        return f"{scheme}:///{{tmp_path}}/log.db?session_timeout=1"

    @pytest.fixture
    def unreachable_url(self, tmp_path):
        (tmp_path / "file").touch()
        return f"{scheme}:///{{tmp_path}}/file/log.db"
"""
IMPATIENT = "patience, takeover, margin = 4.0, 5.0, 1.0"
PARALLEL_RUNS = 4
SABOTEURS = [saboteur for saboteur in saboteurs.ALL if saboteur.clause]

Outcomes = Mapping[tuple[str, str], str]


class Site:
    """A directory for the runs, with the saboteurs installed as drivers of another distribution."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        info = directory / "site" / "saboteurs-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: saboteurs\nVersion: 1.0\n")
        entries = [f"{saboteurs.scheme(s)} = {s.__module__}:{s.__name__}" for s in saboteurs.ALL]
        (info / "entry_points.txt").write_text("\n".join(["[notifier_kafka.drivers]", *entries, ""]))
        (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
        suite = ["import pytest", "from notifier_kafka.testing import conformance", ""]
        for saboteur in saboteurs.ALL:
            settings = IMPATIENT if saboteur.clause else "pass"
            scheme = saboteurs.scheme(saboteur)
            suite.append(CLASS.format(name=saboteur.__name__, scheme=scheme, settings=settings))
        self._suite = directory / "test_suite.py"
        self._suite.write_text("\n".join(suite))

    def run(self, name: str, selection: Iterable[str]) -> Outcomes:
        """Run tests, by their ids, in another pytest; return outcomes by class and test."""
        report = self._directory / f"{name}.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", f"--basetemp={self._directory / name}"]
        command += [f"{self._suite}::{test}" for test in selection]
        path = os.pathsep.join([str(self._directory / "site"), str(ROOT)])
        # stevedore caches entry points by sys.path: use a cache for this run only.
        cache = str(self._directory / "cache")
        done = subprocess.run(
            command,
            cwd=self._directory,
            env=os.environ | {"PYTHONPATH": path, "XDG_CACHE_HOME": cache},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        cases = ElementTree.parse(report).iter("testcase")
        return {(_class(case), case.get("name", "")): _outcome(case) for case in cases}


def _class(case: ElementTree.Element) -> str:
    return case.get("classname", "").rpartition(".")[2]


def _outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    site = Site(tmp_path_factory.mktemp("saboteurs"))
    named = dict.fromkeys(test for saboteur in SABOTEURS for test in saboteur.caught_by)
    selections = {"honest": [f"TestHonest::{test}" for test in named]}
    for saboteur in SABOTEURS:
        selections.setdefault(f"clause-{saboteur.clause}", []).extend(
            f"Test{saboteur.__name__}::{test}" for test in saboteur.caught_by
        )
    with ThreadPoolExecutor(PARALLEL_RUNS) as pool:
        runs = pool.map(site.run, selections, selections.values())
        return {test: outcome for run in runs for test, outcome in run.items()}


def test_every_clause_has_a_saboteur() -> None:
    assert {saboteur.clause for saboteur in SABOTEURS} == set(range(1, 11))


def test_every_test_of_a_clause_catches_a_saboteur() -> None:
    tests = {name for name in dir(conformance.DriverSuite) if name.startswith("test_clause_")}
    assert tests == {name.partition("[")[0] for saboteur in SABOTEURS for name in saboteur.caught_by}


def test_an_honest_driver_passes_the_same_tests(outcomes: Outcomes) -> None:
    honest = {name: outcome for (suite, name), outcome in outcomes.items() if suite == "TestHonest"}
    named = (name for saboteur in SABOTEURS for name in saboteur.caught_by)
    assert honest == dict.fromkeys(named, "passed")


@pytest.mark.parametrize("saboteur", SABOTEURS, ids=lambda saboteur: str(saboteur.__name__))
def test_a_saboteur_is_caught(saboteur: type[saboteurs.Saboteur], outcomes: Outcomes) -> None:
    assert saboteur.caught_by
    assert all(name.startswith(f"test_clause_{saboteur.clause}_") for name in saboteur.caught_by)
    found = {name: outcomes[f"Test{saboteur.__name__}", name] for name in saboteur.caught_by}
    assert found == dict.fromkeys(saboteur.caught_by, "failure")
