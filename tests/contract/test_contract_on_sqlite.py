"""The conformance suite on the SQLite driver."""

import pathlib
import subprocess
import sys

import pytest

from notifier_kafka.testing import conformance


class TestSqlite(conformance.DriverSuite):
    @pytest.fixture
    def url(self, tmp_path: pathlib.Path) -> str:
        return f"sqlite:///{tmp_path / 'log.db'}"

    @pytest.fixture
    def unreachable_url(self, tmp_path: pathlib.Path) -> str:
        obstacle = tmp_path / "file"
        obstacle.write_text("not a directory")
        return f"sqlite:///{obstacle / 'log.db'}"

    @pytest.fixture
    def config_files(self, tmp_path: pathlib.Path) -> list[str]:
        # A dead member loses its partitions after one second, so that the tests are quick.
        path = tmp_path / "service.conf"
        path.write_text("[drivers_sqlite]\nsession_timeout = 1\n")
        return [str(path)]


@pytest.mark.parametrize("transactions", [True, False])
def test_clause_10_is_for_drivers_that_have_transactions(tmp_path: pathlib.Path, transactions: bool) -> None:
    suite = tmp_path / "test_suite.py"
    suite.write_text(
        "from notifier_kafka.testing import conformance\n"
        "class TestIt(conformance.DriverSuite):\n"
        f"    transactions = {transactions}\n"
    )
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(suite)]
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    found = {line.rpartition("::")[2].partition("[")[0] for line in listed.splitlines() if "::" in line}
    wanted = {name for name in dir(conformance.DriverSuite) if name.startswith("test_")}
    assert found == {name for name in wanted if transactions or not name.startswith("test_clause_10_")}
