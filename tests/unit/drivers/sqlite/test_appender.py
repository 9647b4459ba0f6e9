"""Writing: what arrives, in which order, and what happens when it cannot."""

import itertools
import pathlib
import random
import signal
import sqlite3
import threading

import pytest

from notifier_kafka.contract.driver import Limits, Partition, Receipt, Record, Span
from notifier_kafka.errors import DeliveryFailed, LogUnusable, MessagingException, TransportUnavailable
from notifier_kafka_drivers.sqlite import blocks, logfile
from tests.unit.drivers.sqlite.sqlite_rig import (
    LONG,
    await_true,
    child,
    line,
    make_driver,
    numbers,
    open_driver,
    publish,
    read_all,
    unexpected,
)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "log.db"


def integrity(path: pathlib.Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        connection.close()


def test_every_byte_comes_back(path: pathlib.Path) -> None:
    records = [
        Record("t", None, None, ()),
        Record("t", b"", b"", (("", b""),)),
        Record("t", b"a\0b\xff\xfe", b"\0\xff", (("n\u00e4me", b"\0\xff"), ("n\u00e4me", b"twice"))),
        Record("t", bytes(range(256)) * 4000, b"k" * 1000, tuple((f"h{i}", b"v" * i) for i in range(50))),
        Record("t", '{"a": "\u20ac"}'.encode(), None, (("long", bytes(100_000)),)),
    ]
    receipts: list[Receipt | MessagingException] = []
    with open_driver(path, "partitions=1") as driver:
        publisher = driver.publisher(unexpected, Limits())
        for record in records:
            publisher.offer(record, receipts.append)
        assert publisher.flush(LONG) == 0
        found = read_all(driver, "t")
    assert [delivery.record for delivery in found] == records
    assert [Receipt(delivery.partition, delivery.offset) for delivery in found] == receipts


@pytest.mark.parametrize("count", [1, 2, 3, 255, 4095, 4096, 4097, 10_000])
def test_any_number_of_blocks_goes_in_and_out(path: pathlib.Path, count: int) -> None:
    with open_driver(path, "partitions=1") as driver:
        driver.admin().create_topic("t")
        with driver._log.writing() as connection:
            made = [
                blocks.make_block((1 << 40) + number, 7, (None, b"v%d" % number, None))
                for number in range(count)
            ]
            blocks.insert(connection, made)
            connection.execute("UPDATE partitions SET next = ?", (count,))
        assert [delivery.record.value for delivery in read_all(driver, "t")] == [
            b"v%d" % number for number in range(count)
        ]


@pytest.mark.parametrize("size", [0, 3 * blocks.BLOCK_BYTES // blocks.BLOCK_RECORDS, blocks.BLOCK_BYTES])
def test_any_part_of_any_number_of_records_can_be_read(path: pathlib.Path, size: int) -> None:
    chance = random.Random(size)
    written: list[Record] = []
    with open_driver(path, "partitions=1") as driver:
        most = blocks.BLOCK_RECORDS if size < blocks.BLOCK_BYTES else 10
        for count in (1, most, 3, 2 * most + 1):
            records = [
                Record("t", b"%d" % number + bytes(size), chance.choice([None, b"", b"k"]))
                for number in range(count)
            ]
            transaction = driver.transaction()
            for record in records:
                transaction.offer(record)
            transaction.commit(LONG)
            written += records
        for _ in range(50):
            start, stop = sorted(chance.choices(range(len(written) + 1), k=2))
            found = list(driver.read(Span(Partition("t", 0), start, stop)))
            assert [delivery.record for delivery in found] == written[start:stop]
            assert [delivery.offset for delivery in found] == list(range(start, stop))


def test_frames_shrink_for_large_records(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=1") as driver:
        publisher = driver.publisher(unexpected, Limits())
        for _ in range(60):
            publisher.offer(Record("t", bytes(1_000_000)))
        assert publisher.flush(LONG) == 0
        subscription = driver.subscribe(["t"], "g", "earliest")
        sizes: list[int] = []
        while sum(sizes) < 60:
            sizes.append(len(subscription.poll(1_000, LONG)))
    assert max(sizes[1:]) <= 4


def test_keys_keep_to_one_partition_in_order(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=8") as driver:
        for round_ in range(3):
            for key in (b"a", b"b", b"c"):
                publish(driver, "t", range(round_ * 100, round_ * 100 + 100), key)
        found = read_all(driver, "t")
    for key in (b"a", b"b", b"c"):
        mine = [delivery for delivery in found if delivery.record.key == key]
        assert len({delivery.partition for delivery in mine}) == 1
        assert numbers(mine) == list(range(300))


def test_records_without_a_key_use_all_partitions(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=3") as driver:
        publisher = driver.publisher(unexpected, Limits())
        for _ in range(3):
            publisher.offer(Record("t", b"x"))
            assert publisher.flush(LONG) == 0
        assert [span.stop for span in driver.spans(["t"])] == [1, 1, 1]


def test_time_never_goes_back(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", [0])
        future = 4_000_000_000
        with driver._log.writing() as connection:
            connection.execute("UPDATE partitions SET stamp = ?", (future * blocks.MICROSECONDS,))
        publish(driver, "t", [1, 2])
        stamps = [delivery.timestamp for delivery in read_all(driver, "t")]
        assert stamps[1:] == [future, future]
        (span,) = driver.spans(["t"], since=future)
        assert (span.start, span.stop) == (1, 3)


def test_a_name_that_no_topic_can_have_costs_its_record_only(path: pathlib.Path) -> None:
    failures: list[Record] = []
    with open_driver(path) as driver:
        publisher = driver.publisher(lambda record, _: failures.append(record), Limits())
        bad = [Record("", b"1"), Record("a\0b", b"1"), Record("\udc80", b"1"), Record("x" * 250, b"1")]
        for record in [*bad, Record("good", b"2")]:
            publisher.offer(record)
        assert publisher.flush(LONG) == 0
        assert failures == bad
        assert numbers(read_all(driver, "good")) == [2]
        assert driver.admin().list_topics() == ["good"]


def test_a_lock_that_is_held_delays_and_loses_nothing(path: pathlib.Path) -> None:
    with open_driver(path, "busy_timeout=0.1") as driver, child("hold", path) as holder:
        assert line(holder) == "held"
        publisher = driver.publisher(unexpected, Limits())
        publisher.offer(Record("t", b"1", b"k"))
        assert publisher.flush(0.5) == 1
        # The end of a process frees its lock, however it ends.
        holder.send_signal(signal.SIGKILL)
        assert publisher.flush(LONG) == 0
        assert numbers(read_all(driver, "t")) == [1]
    assert integrity(path) == "ok"


def test_a_lock_that_stays_held_is_an_error_that_names_it(path: pathlib.Path) -> None:
    with child("hold", path) as holder:
        assert line(holder) == "held"
        driver = make_driver(path, "busy_timeout=0.2")
        with pytest.raises(TransportUnavailable, match=r"log\.db-lock"):
            driver.admin().list_topics()
        failures: list[MessagingException] = []
        publisher = driver.publisher(lambda _, error: failures.append(error), Limits(retry=1))
        publisher.offer(Record("t", b"1"))
        assert publisher.flush(LONG) == 0
        (failure,) = failures
        assert isinstance(failure, DeliveryFailed)
        assert isinstance(failure.__cause__, TransportUnavailable)
    driver.close()


def test_poll_beside_a_lock_keeps_its_time_and_tells_in_the_end(path: pathlib.Path) -> None:
    with open_driver(path, "busy_timeout=1") as driver:
        publish(driver, "t", [1])
        subscription = driver.subscribe(["t"], "g", "earliest")
        with child("hold", path) as holder:
            assert line(holder) == "held"
            assert subscription.poll(1, 0.05) == ()
            polls = iter(lambda: subscription.poll(1, 0.05), None)
            with pytest.raises(TransportUnavailable):
                list(itertools.islice(polls, 1_000))
        assert numbers(subscription.poll(1, LONG)) == [1]


def test_closing_a_publisher_does_not_wait_for_a_lock(path: pathlib.Path) -> None:
    failures: list[MessagingException] = []
    with open_driver(path, "busy_timeout=3600") as driver:
        publish(driver, "t", [0])
        publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
        with child("hold", path) as holder:
            assert line(holder) == "held"
            publisher.offer(Record("t", b"1"))
            publisher.close()
            assert len(failures) == 1
        assert numbers(read_all(driver, "t")) == [0]


def test_a_full_disk_delays_and_loses_nothing(path: pathlib.Path) -> None:
    with child("fill", path) as filler:
        assert line(filler) == "True 0 0 True"
        assert filler.wait(LONG) == 0
    assert integrity(path) == "ok"


def test_a_full_database_is_told_as_a_full_disk(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        publish(driver, "t", [1])
        with driver._log.reading() as connection:
            connection.execute("PRAGMA max_page_count = 20").fetchall()
        failures: list[MessagingException] = []
        publisher = driver.publisher(lambda _, error: failures.append(error), Limits(retry=0))
        publisher.offer(Record("t", bytes(1_000_000)))
        assert publisher.flush(LONG) == 0
        (failure,) = failures
        assert "make room" in str(failure)
        publisher.offer(Record("t", b"2", b"k"))
        assert publisher.flush(LONG) == 0
        assert len(failures) == 1
        assert numbers(read_all(driver, "t")) == [1, 2] or numbers(read_all(driver, "t")) == [2, 1]


def test_a_writer_killed_at_any_moment_loses_nothing_acknowledged(path: pathlib.Path) -> None:
    acknowledged = -1
    for _ in range(3):
        with child("write_endlessly", path) as writer:
            for _ in range(200):
                acknowledged = int(line(writer))
            writer.send_signal(signal.SIGKILL)
            assert writer.stdout
            # What stood in the pipe was acknowledged too; the last line may be cut off.
            for text in writer.stdout.read().split("\n")[:-1]:
                acknowledged = int(text)
        with open_driver(path) as driver:
            found = numbers(read_all(driver, "t"))
            assert found[: acknowledged + 1] == list(range(acknowledged + 1))
            assert found == list(range(len(found)))
            driver.admin().delete_topic("t")
        assert integrity(path) == "ok"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_both_sides_of_a_fork_publish(path: pathlib.Path) -> None:
    with child("fork", path) as parent:
        assert line(parent) == "0"
        assert parent.wait(LONG) == 0
    with open_driver(path) as driver:
        found = read_all(driver, "t")
        assert sorted(numbers(found)) == [*range(30), *range(100, 110)]
        mine = [delivery for delivery in found if delivery.record.key == b"parent"]
        assert numbers(mine) == list(range(30))
    assert integrity(path) == "ok"


def test_threads_that_end_leave_no_connections(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        publish(driver, "t", [1])
        for _ in range(20):
            thread = threading.Thread(target=lambda: driver.spans(["t"]))
            thread.start()
            thread.join()
        assert len(driver._log._identities) <= 2


def test_the_wal_stays_bounded(path: pathlib.Path) -> None:
    with open_driver(path, "synchronous=normal") as driver:
        publisher = driver.publisher(unexpected, Limits())
        for _ in range(60):
            publisher.offer(Record("t", bytes(1_000_000)))
        assert publisher.flush(LONG) == 0
        await_true(lambda: path.stat().st_size > 30_000_000)
        wal = path.with_name("log.db-wal")
        assert wal.stat().st_size < 2 * logfile.WAL_LIMIT_BYTES


def test_a_closed_driver_says_so(path: pathlib.Path) -> None:
    driver = make_driver(path)
    publish(driver, "t", [1])
    driver.close()
    driver.close()
    with pytest.raises(LogUnusable, match="closed"):
        driver.spans(["t"])
