"""What is too old or too much goes, in steps, and offsets never come back."""

import pathlib
import time
from collections.abc import Sequence

import pytest

from notifier_kafka.contract.driver import Delivery, Limits, Partition, Record
from notifier_kafka_drivers.sqlite import logfile, retention
from notifier_kafka_drivers.sqlite.retention import Retention, RetentionLimits
from tests.unit.drivers.sqlite.sqlite_rig import (
    LONG,
    await_true,
    ends,
    numbers,
    open_driver,
    publish,
    read_all,
    unexpected,
)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "log.db"


def test_by_age_what_is_older_goes(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", range(60))
        publish(driver, "t", range(60, 100))
        hour = 3600 * 1_000_000
        with driver._log.writing() as connection:
            connection.execute("UPDATE blocks SET stamp = stamp - 2 * ? WHERE id & 0xff < 60", (hour,))
        keep = Retention(driver._log, lambda: RetentionLimits(3600, 0))
        assert keep.step() == 60
        assert keep.step() == 0
        assert numbers(read_all(driver, "t")) == list(range(60, 100))
        (span,) = driver.spans(["t"])
        assert (span.start, span.stop) == (60, 100)


def test_everything_may_go_and_offsets_go_on(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", range(10))
        before = time.time()
        while time.time() <= before:
            pass
        assert Retention(driver._log, lambda: RetentionLimits(1e-6, 0)).step() == 10
        publish(driver, "t", [10])
        (delivery,) = read_all(driver, "t")
        assert delivery.offset == 10


@pytest.mark.parametrize("limits", [RetentionLimits(1e-6, 0), RetentionLimits(0, 1)])
def test_who_asked_is_told_of_what_is_deleted(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, limits: RetentionLimits
) -> None:
    # Not at the end of a block, of which a part stays in the file.
    monkeypatch.setattr(retention, "STEP_RECORDS", 300)
    told: list[Delivery] = []
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", range(700))
        whole = read_all(driver, "t")
        driver.on_deleted(told.extend)
        keep = Retention(driver._log, lambda: limits, lambda: told.extend)
        while keep.step():
            assert told + read_all(driver, "t") == whole
        assert len(told) >= 300


def test_a_step_is_bounded(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "STEP_RECORDS", 7)
    with open_driver(path) as driver:
        publish(driver, "t", range(10), b"a")
        publish(driver, "u", range(10), b"b")
        keep = Retention(driver._log, lambda: RetentionLimits(1e-6, 0))
        assert [keep.step() for _ in range(4)] == [7, 7, 6, 0]


def test_by_size_the_file_stays_bounded(path: pathlib.Path) -> None:
    bound = 4_000_000
    with open_driver(path, f"retention_bytes={bound}&synchronous=normal") as driver:
        publisher = driver.publisher(unexpected, Limits())
        for number in range(20_000):
            publisher.offer(Record("t", b"%d" % number + bytes(1_000), b"%d" % (number % 7)))
            if number % 500 == 0:
                assert publisher.flush(LONG) == 0
        assert publisher.flush(LONG) == 0
        spans = driver.spans(["t"])
        assert sum(span.stop for span in spans) == 20_000
        kept = sum(span.stop - span.start for span in spans)
        assert 1_000 < kept < 10_000
        with driver._log.reading() as connection:
            used = retention._bytes_used(connection)
        assert used < 3 * bound


def test_a_listener_alone_deletes_what_is_too_old(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        publish(driver, "t", range(10))
        with driver._log.writing() as connection:
            connection.execute("UPDATE blocks SET stamp = 0")
    with open_driver(path, "session_timeout=0.3&retention_seconds=3600") as driver:
        subscription = driver.subscribe(["t"], "g", "latest")
        assert subscription.poll(1, 0) == ()
        await_true(lambda: all(span.start == span.stop for span in driver.spans(["t"])))
        assert sum(span.stop for span in driver.spans(["t"])) == 10


def test_a_listener_alone_keeps_the_wal_short(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfile, "WAL_LIMIT_BYTES", 200_000)
    with open_driver(path) as driver:
        publish(driver, "t", range(100))
    wal, sizes = path.with_name("log.db-wal"), [0]
    with open_driver(path, "session_timeout=0.3") as driver:
        subscription = driver.subscribe(["t"], "g", "earliest")
        assert subscription.poll(1, LONG)

        def shrank() -> bool:
            driver.admin().reset_group("other", {Partition("t", 0): len(sizes)})
            sizes.append(wal.stat().st_size)
            return sizes[-1] < max(sizes)

        await_true(shrank)
    assert max(sizes) > 200_000


def test_a_position_behind_goes_on_from_the_first_and_says_so_once(
    path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", range(10))
        subscription = driver.subscribe(["t"], "g", "earliest")
        found = subscription.poll(2, LONG)
        subscription.commit(ends(found))
        driver.admin().purge_topic("t")
        publish(driver, "t", [10, 11])
        assert numbers(subscription.poll(1, LONG)) == [10]
        assert numbers(subscription.poll(1, LONG)) == [11]
        warnings = [record.getMessage() for record in caplog.records]
        assert warnings == ["Group g lost 8 records of t[0]: they were deleted before they were read"]
        assert driver.admin().describe_group("g").lag == {Partition("t", 0): 2}


def test_a_failing_step_does_not_repeat_what_was_published(
    path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_driver(path, "retention_seconds=3600") as driver:
        publish(driver, "t", [0])
        with driver._log.writing() as connection:
            connection.execute(
                "CREATE TRIGGER no BEFORE DELETE ON blocks BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
            connection.execute("UPDATE blocks SET stamp = 0")
        publish(driver, "t", [1])
        assert sorted(numbers(read_all(driver, "t"))) == [0, 1]
    assert "Clean-up is put off" in caplog.text


def test_a_callback_that_raises_fails_nothing_that_was_published(
    path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[int] = []

    def tell(gone: Sequence[Delivery]) -> None:
        told.extend(numbers(gone))
        raise ValueError("of the callback's own")

    with open_driver(path, "retention_seconds=3600") as driver:
        driver.on_deleted(tell)
        publish(driver, "t", [0])
        with driver._log.writing() as connection:
            connection.execute("UPDATE blocks SET stamp = 0")
        publish(driver, "t", [1])
        assert (told, numbers(read_all(driver, "t"))) == ([0], [1])
    assert [record.getMessage() for record in caplog.records] == [
        "A callback for 1 records that were deleted raised"
    ]
    assert "ValueError: of the callback's own" in caplog.text
