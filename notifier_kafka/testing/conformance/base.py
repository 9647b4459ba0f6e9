"""What a third party fills in: a URL, and how patient to be."""

import pathlib
from collections.abc import Iterator
from typing import ClassVar

import pytest

from notifier_kafka.testing.conformance.rig import Rig


class Base:
    """The knobs of the suite; override them in your subclass."""

    patience: ClassVar[float] = 30.0
    """Seconds in which anything that has to come true does."""

    takeover: ClassVar[float] = 60.0
    """Seconds in which the partitions of a member that died go to another."""

    margin: ClassVar[float] = 5.0
    """Seconds that a call may be late on a busy machine."""

    transactions: ClassVar[bool] = True
    """Whether the driver has transactions; without them the tests of clause 10 are not there."""

    @pytest.fixture
    def url(self) -> str:
        """The URL of a log that the test may write to."""
        raise NotImplementedError("override the fixture url: it returns the URL of a log to test on")

    @pytest.fixture
    def unreachable_url(self) -> str:
        """The URL of a log of the same kind that cannot be reached or used."""
        raise NotImplementedError("override the fixture unreachable_url: a log that cannot be reached")

    @pytest.fixture
    def config_files(self) -> list[str]:
        """INI files that every driver of the suite reads, also in its child processes."""
        return []

    @pytest.fixture
    def rig(self, url: str, config_files: list[str], tmp_path: pathlib.Path) -> Iterator[Rig]:
        made = Rig(url, config_files, self.patience, tmp_path)
        yield made
        made.close()
