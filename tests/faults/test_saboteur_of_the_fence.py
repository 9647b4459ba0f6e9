"""Saboteurs that patch classes. No type check sees the private names that they use."""

import pathlib

import pytest

from faults.nemesis import saboteurs
from notifier_kafka.contract.driver import Partition
from notifier_kafka_drivers.sqlite.membership import Membership
from tests.unit.drivers.sqlite.sqlite_rig import open_driver, publish


def test_without_the_fence_a_member_commits_what_it_does_not_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Undone at the end of the test.
    monkeypatch.setattr(Membership, "commit", Membership.commit)
    with open_driver(tmp_path / "log.db", "partitions=1") as driver:
        publish(driver, "t", range(5))
        first = driver.subscribe(["t"], "g", "earliest")
        assert len(first.poll(10, 1.0)) == 5
        with driver._log.writing() as connection:
            connection.execute("DELETE FROM claims")
        saboteurs.sabotage(driver, "SkipsTheFence")
        first.commit({Partition("t", 0): 3})
        assert driver.admin().describe_group("g").positions == {Partition("t", 0): 3}
