"""The contract, on SQLite."""

import pathlib

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
        # A member that died is given up after a second, so that nobody waits for long.
        path = tmp_path / "service.conf"
        path.write_text("[drivers_sqlite]\nsession_timeout = 1\n")
        return [str(path)]
