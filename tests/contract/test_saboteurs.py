"""A contract test is worth something if a driver that breaks its clause fails it."""

import os
import pathlib
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import saboteurs

SUITE = """
import pytest
from notifier_kafka.testing import conformance

class TestSabotaged(conformance.DriverSuite):
    patience, takeover, margin = 8.0, 15.0, 2.0

    @pytest.fixture
    def url(self, tmp_path):
        return f"{scheme}:///{{tmp_path}}/log.db?session_timeout=1"

    @pytest.fixture
    def unreachable_url(self, tmp_path):
        (tmp_path / "file").touch()
        return f"{scheme}:///{{tmp_path}}/file/log.db"
"""


@pytest.fixture(scope="session")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A distribution that brings the saboteurs, as a third party's brings its driver."""
    site = tmp_path_factory.mktemp("site")
    info = site / "saboteurs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: saboteurs\nVersion: 1.0\n")
    entries = [f"{saboteurs.scheme(s)} = {s.__module__}:{s.__name__}" for s in saboteurs.ALL]
    (info / "entry_points.txt").write_text("\n".join(["[notifier_kafka.drivers]", *entries, ""]))
    return site


def run_suite(
    saboteur: type[saboteurs.Saboteur], selection: str, site: pathlib.Path, directory: pathlib.Path
) -> dict[str, str]:
    """Run part of the suite on a saboteur in another pytest; return outcomes by test."""
    (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    suite = directory / "test_sabotaged.py"
    suite.write_text(SUITE.format(scheme=saboteurs.scheme(saboteur)))
    report = directory / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", selection]
    command += [f"--junitxml={report}", f"--basetemp={directory / 'tmp'}", str(suite)]
    path = os.pathsep.join([str(site), str(pathlib.Path(__file__).parent)])
    # stevedore keeps a cache of entry points by sys.path; this one is good for one run.
    environment = os.environ | {"PYTHONPATH": path, "XDG_CACHE_HOME": str(directory / "cache")}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {case.get("name", ""): _outcome(case) for case in ElementTree.parse(report).iter("testcase")}


def _outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")


def test_every_clause_has_a_saboteur() -> None:
    assert {saboteur.clause for saboteur in saboteurs.ALL} == set(range(10))


def test_an_honest_driver_passes_every_clause(distribution: pathlib.Path, tmp_path: pathlib.Path) -> None:
    outcomes = run_suite(saboteurs.Honest, "clause_", distribution, tmp_path)
    assert {name: outcome for name, outcome in outcomes.items() if outcome != "passed"} == {}
    named = {name for saboteur in saboteurs.ALL for name in saboteur.caught_by}
    assert named <= set(outcomes)


@pytest.mark.parametrize(
    "saboteur", [s for s in saboteurs.ALL if s.clause], ids=lambda saboteur: str(saboteur.__name__)
)
def test_a_saboteur_is_caught(
    saboteur: type[saboteurs.Saboteur], distribution: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    outcomes = run_suite(saboteur, f"clause_{saboteur.clause}_", distribution, tmp_path)
    red = {name for name, outcome in outcomes.items() if outcome == "failure"}
    assert set(saboteur.caught_by) <= red
