"""Custom partitioners: a function of another distribution chooses, whichever the client library."""

import pathlib
from typing import Any

import pytest

from notifier_kafka.contract.driver import Limits, Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, DriverLoadFailure, DriverNotFound
from tests.shared.kafka.kafka_rig import PATIENCE, Connect, publish, until

MODULE = """
def by_last_digit(key, partitions):
    if key is None:
        return partitions - 1
    return int(key[-1:]) % partitions


def outside(key, partitions):
    return partitions


def half(key, partitions):
    return 0.5
"""
ENTRIES = """[notifier_kafka.partitioners]
digit = partitioners_of_others:by_last_digit
outside = partitioners_of_others:outside
half = partitioners_of_others:half
lame = partitioners_of_others:nothing_of_the_kind
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution that brings partitioners."""
    (tmp_path / "partitioners_of_others.py").write_text(MODULE)
    info = tmp_path / "partitioners_of_others-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: partitioners-of-others\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))


def places(driver: Any, topic: str) -> dict[bytes, int]:
    """Say which partition each value is in."""
    return {d.record.value: d.partition.number for span in driver.spans([topic]) for d in driver.read(span)}


def test_a_function_chooses_from_the_first_record_of_a_new_topic_on(connect: Connect, topic: str) -> None:
    driver = connect(partitioner="digit", topic_partitions=4, topic_replication=1)
    publish(driver, *(Record(topic, b"%d" % n, b"key-%d" % n) for n in range(8)), Record(topic, b"none"))
    assert places(driver, topic) == {b"%d" % n: n % 4 for n in range(8)} | {b"none": 3}


def test_a_function_chooses_in_transactions_too(connect: Connect, topic: str) -> None:
    driver = connect(partitioner="digit", topic_partitions=4, topic_replication=1)
    transaction = driver.transaction()
    for n in range(8):
        transaction.offer(Record(topic, b"%d" % n, b"key-%d" % n))
    receipts = transaction.commit(PATIENCE)
    assert [receipt.partition.number for receipt in receipts] == [n % 4 for n in range(8)]
    assert places(driver, topic) == {b"%d" % n: n % 4 for n in range(8)}
    again = driver.transaction()
    again.offer(Record(topic, b"x", b"no number"))
    with pytest.raises(DeliveryFailed, match="partitioner digit raised ValueError"):
        again.commit(PATIENCE)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("digit", "partitioner digit raised ValueError: invalid literal"),
        ("outside", "partitioner outside returned 2: there are 2 partitions"),
        ("half", r"partitioner half returned 0\.5"),
    ],
)
def test_a_function_that_fails_costs_the_caller_that_record(
    connect: Connect, topic: str, name: str, words: str
) -> None:
    driver = connect(partitioner=name)
    driver.admin().create_topic(topic, 2)
    settled: list[Any] = []
    publisher = driver.publisher(lambda *_: None, Limits())
    # The first one waits for the topic, so its caller has gone on when its place is asked for.
    publisher.offer(Record(topic, b"1", b"no number"), settled.append)
    assert publisher.flush(PATIENCE) == 0
    assert [type(outcome) for outcome in settled] == [DeliveryFailed]

    def refused() -> bool:
        try:
            publisher.offer(Record(topic, b"2", b"no number"), settled.append)
        except DeliveryFailed as error:
            settled.append(error)
            return True
        return False

    until(refused, "the refusal in the call itself")
    with pytest.raises(DeliveryFailed, match=words):
        raise settled[-1]
    if name == "digit":
        publisher.offer(Record(topic, b"3", b"key-3"), settled.append)
        assert publisher.flush(PATIENCE) == 0
        assert settled[-1] == Receipt(Partition(topic, 1), 0)


@pytest.mark.long
def test_a_topic_made_again_has_its_partitions_counted_again(connect: Connect, topic: str) -> None:
    driver = connect(partitioner="digit", topic_partitions=4, topic_replication=1)
    driver.admin().create_topic(topic, 1)
    settled: list[Any] = []
    publisher = driver.publisher(lambda *_: None, Limits(retry=3))
    publisher.offer(Record(topic, b"before", b"key-3"), settled.append)
    assert publisher.flush(PATIENCE) == 0
    assert settled == [Receipt(Partition(topic, 0), 0)]
    driver.admin().delete_topic(topic)
    until(lambda: topic not in driver.admin().list_topics(), "the topic to go")

    def spread() -> bool:
        # What is sent until the client notices is of the topic that is gone; then it is made again.
        publisher.offer(Record(topic, b"after", b"key-3"), settled.append)
        assert publisher.flush(PATIENCE) == 0
        return isinstance(settled[-1], Receipt) and settled[-1].partition.number == 3

    until(spread, "a record in the fourth partition")


def test_a_name_that_nobody_has_is_told_with_those_that_there_are(connect: Connect) -> None:
    with pytest.raises(DriverNotFound, match="one of digit, half, lame, murmur2, outside"):
        connect(partitioner="digits").publisher(lambda *_: None, Limits())
    with pytest.raises(DriverLoadFailure, match="nothing_of_the_kind"):
        connect(partitioner="lame").publisher(lambda *_: None, Limits())
