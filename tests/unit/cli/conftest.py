"""The fixture ``cli``: the program on a new SQLite log."""

import pathlib
from collections.abc import Iterator

import pytest

from tests.unit.cli.cli_runner import CliRunner


@pytest.fixture
def cli(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> Iterator[CliRunner]:
    made = CliRunner(f"sqlite:///{tmp_path}/log.db", capsys)
    yield made
    made.transport.cleanup()
