"""The program on a log of its own."""

import pathlib
from collections.abc import Iterator

import pytest

from tests.unit.cli.cli_bench import Bench


@pytest.fixture
def bench(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Bench]:
    made = Bench(f"sqlite:///{tmp_path}/log.db", capsys)
    yield made
    made.transport.cleanup()
