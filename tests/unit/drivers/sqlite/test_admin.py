"""Topics and groups as an operator sees them."""

import pathlib
from collections.abc import Iterator

import pytest

from notifier_kafka.contract.driver import Partition, Span
from notifier_kafka.errors import ConfigurationError, GroupBusy, TopicNotFound
from notifier_kafka_drivers.sqlite import admin, options
from notifier_kafka_drivers.sqlite.driver import SqliteDriver
from tests.unit.drivers.sqlite.sqlite_rig import (
    LONG,
    ends,
    make_driver,
    numbers,
    open_driver,
    publish,
    read_all,
)


@pytest.fixture
def driver(tmp_path: pathlib.Path) -> Iterator[SqliteDriver]:
    with open_driver(tmp_path / "log.db") as driver:
        yield driver


def test_topics_are_made_once_in_the_shape_asked_for(driver: SqliteDriver) -> None:
    driver.admin().create_topic("a", 2)
    driver.admin().create_topic("a")
    driver.admin().create_topic("a", 2)
    driver.admin().create_topic("b")
    assert driver.admin().list_topics() == ["a", "b"]
    assert driver.admin().describe_topic("a").spans == (
        Span(Partition("a", 0), 0, 0),
        Span(Partition("a", 1), 0, 0),
    )
    assert len(driver.admin().describe_topic("b").spans) == 4
    with pytest.raises(ConfigurationError, match="exists with 2"):
        driver.admin().create_topic("a", 3)


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 250, "\udc80"])
def test_bad_names_are_refused(driver: SqliteDriver, name: str) -> None:
    with pytest.raises(ConfigurationError):
        driver.admin().create_topic(name)
    with pytest.raises(ConfigurationError):
        driver.subscribe([name], "g", "earliest")


def test_bad_shapes_are_refused(driver: SqliteDriver) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        driver.admin().create_topic("t", 0)
    with pytest.raises(ConfigurationError, match="cleanup"):
        driver.admin().create_topic("t", 1, {"cleanup": "compact"})


def test_what_is_not_there_is_not_found(driver: SqliteDriver) -> None:
    for act in (driver.admin().describe_topic, driver.admin().delete_topic, driver.admin().purge_topic):
        with pytest.raises(TopicNotFound, match="nowhere"):
            act("nowhere")
    assert driver.spans(["nowhere"]) == []
    with pytest.raises(TopicNotFound):
        list(driver.read(Span(Partition("nowhere", 0), 0, 1)))
    with pytest.raises(TopicNotFound):
        driver.admin().reset_group("g", {Partition("nowhere", 0): 1})


def test_purging_goes_in_steps_and_keeps_offsets(
    driver: SqliteDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "STEP_RECORDS", 7)
    publish(driver, "t", range(50))
    driver.admin().purge_topic("t")
    assert read_all(driver, "t") == []
    publish(driver, "t", [50])
    assert [delivery.offset for delivery in read_all(driver, "t")] == [50]


def test_a_deleted_topic_begins_anew(driver: SqliteDriver) -> None:
    publish(driver, "t", range(50))
    driver.admin().delete_topic("t")
    assert driver.admin().list_topics() == []
    publish(driver, "t", [7])
    (delivery,) = read_all(driver, "t")
    assert (delivery.offset, numbers([delivery])) == (0, [7])
    with driver._log.reading() as connection:
        assert connection.execute("SELECT count(*) FROM blocks").fetchone() == (1,)


def test_a_group_is_reset_only_when_nobody_is_in_it(driver: SqliteDriver) -> None:
    driver.admin().create_topic("t", 1)
    publish(driver, "t", range(10))
    subscription = driver.subscribe(["t"], "g", "earliest")
    subscription.commit(ends(subscription.poll(10, LONG)))
    with pytest.raises(GroupBusy, match=r"active members \(1\)"):
        driver.admin().reset_group("g", {Partition("t", 0): 4})
    subscription.close()
    driver.admin().reset_group("g", {Partition("t", 0): 4})
    assert driver.admin().describe_group("g").lag == {Partition("t", 0): 6}
    again = driver.subscribe(["t"], "g", "earliest")
    assert numbers(again.poll(10, LONG)) == [4, 5, 6, 7, 8, 9]
    assert driver.admin().list_groups() == ["g"]


def test_spans_by_time_meet_without_overlap(driver: SqliteDriver) -> None:
    driver.admin().create_topic("t", 1)
    for number in range(20):
        publish(driver, "t", [number])
    stamps = [delivery.timestamp for delivery in read_all(driver, "t")]
    for moment in (stamps[0], stamps[7], stamps[19], stamps[19] + 1):
        (before,) = driver.spans(["t"], until=moment)
        (after,) = driver.spans(["t"], since=moment)
        assert before.stop == after.start == sum(stamp < moment for stamp in stamps)
        assert (before.start, after.stop) == (0, 20)


def test_a_reader_that_pauses_holds_no_transaction(driver: SqliteDriver) -> None:
    publish(driver, "t", range(100))
    span = next(span for span in driver.spans(["t"]) if span.stop)
    reader = driver.read(span)
    next(reader)
    with driver._log.reading() as connection, driver._log._locked():
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0
    assert len(list(reader)) == 99


def test_unknown_starts_are_refused(driver: SqliteDriver) -> None:
    with pytest.raises(ConfigurationError, match="earliest, latest"):
        driver.subscribe(["t"], "g", "sometime")


def test_options_are_read_late_and_checked(tmp_path: pathlib.Path) -> None:
    driver = make_driver(tmp_path / "log.db", "synchronous=sometimes")
    with pytest.raises(ConfigurationError, match="synchronous"):
        driver.spans(["t"])
    driver.close()
    assert options.list_opts() == [("drivers_sqlite", options.OPTS)]
    assert driver.virtual_host is None
