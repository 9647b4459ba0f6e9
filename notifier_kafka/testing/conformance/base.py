"""What the author of a driver sets: URLs and time limits."""

import pathlib
from collections.abc import Iterator
from typing import ClassVar

import pytest

from notifier_kafka.testing.conformance.rig import Rig


class Base:
    """The settings of the suite. Override them in your subclass."""

    patience: ClassVar[float] = 30.0
    """Seconds that a test waits for a condition."""

    takeover: ClassVar[float] = 60.0
    """Seconds until the partitions of a dead member are assigned to another."""

    margin: ClassVar[float] = 5.0
    """Seconds that ``poll`` may be late on a busy machine."""

    transactions: ClassVar[bool] = True
    """Whether the driver has transactions. If not, the tests of clause 10 are not collected."""

    @pytest.fixture
    def url(self) -> str:
        """The URL of a log that the test may write to."""
        raise NotImplementedError(
            "override the fixture url: it returns the URL of a log that the test may write to"
        )

    @pytest.fixture
    def unreachable_url(self) -> str:
        """The URL of a log that cannot be reached or used."""
        raise NotImplementedError(
            "override the fixture unreachable_url: it returns the URL of a log that cannot be reached"
        )

    @pytest.fixture
    def config_files(self) -> list[str]:
        """INI files that every driver of the suite reads, also in its child processes."""
        return []

    @pytest.fixture
    def rig(self, url: str, config_files: list[str], tmp_path: pathlib.Path) -> Iterator[Rig]:
        made = Rig(url, config_files, self.patience, tmp_path)
        yield made
        made.close()
