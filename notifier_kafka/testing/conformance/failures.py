# ruff: noqa: S101
"""Clause 7: a driver raises only errors of ``notifier_kafka.errors``."""

import math
from collections.abc import Callable

import pytest

from notifier_kafka.contract.driver import Driver, Limits, Partition, Record, Span
from notifier_kafka.errors import MessagingException, TopicNotFound
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.publishing import SettledRecords
from notifier_kafka.testing.conformance.rig import Member, Rig, count_offsets, values

Call = Callable[[Driver], object]

ON_A_MISSING_TOPIC: dict[str, Call] = {
    "describe": lambda driver: driver.admin().describe_topic("conformance-nowhere"),
    "delete": lambda driver: driver.admin().delete_topic("conformance-nowhere"),
    "purge": lambda driver: driver.admin().purge_topic("conformance-nowhere"),
    "read": lambda driver: list(driver.read(Span(Partition("conformance-nowhere", 0), 0, 5))),
}
ON_AN_UNREACHABLE_LOG: dict[str, Call] = {
    "spans": lambda driver: driver.spans(["conformance"]),
    "read": lambda driver: list(driver.read(Span(Partition("conformance", 0), 0, 1))),
    "list": lambda driver: driver.admin().list_topics(),
    "create": lambda driver: driver.admin().create_topic("conformance", 1),
    "poll": lambda driver: driver.subscribe(["conformance"], "conformance", "earliest").poll(1, 5),
    "publish": lambda driver: _publish(driver, "conformance"),
}
BEYOND_THE_LOG: dict[str, Callable[[Driver, Partition], int]] = {
    "read to 2**64": lambda driver, partition: len(list(driver.read(Span(partition, 0, 2**64)))),
    "read to 2**45": lambda driver, partition: len(list(driver.read(Span(partition, 0, 2**45)))),
    "read from -5": lambda driver, partition: len(list(driver.read(Span(partition, -5, 1000)))),
    "since infinity": lambda driver, partition: _held(driver, partition, since=math.inf),
    "until infinity": lambda driver, partition: _held(driver, partition, until=math.inf),
}
ODD_NAMES = ["", ".", "..", "a b", "a/b", "new\nline\n", "nul\0", "日本", "x" * 300, "'; drop table x"]


def _publish(driver: Driver, topic: str) -> None:
    """Publish one record; raise its error, if it failed."""
    settled = SettledRecords()
    record = Record(topic, b"1")
    publisher = driver.publisher(settled.add, Limits(retry=0))
    publisher.offer(record, lambda fate: settled.add(record, fate))
    publisher.flush(5)
    publisher.close()
    for _, error in settled.failures:
        raise error


def _held(driver: Driver, partition: Partition, **times: float) -> int:
    return count_offsets(
        span for span in driver.spans([partition.topic], **times) if span.partition == partition
    )


class Failures(Base):
    """The errors that a driver raises."""

    @pytest.mark.parametrize("call", ON_A_MISSING_TOPIC)
    def test_clause_7_a_missing_topic_is_topic_not_found(self, rig: Rig, call: str) -> None:
        with pytest.raises(TopicNotFound) as caught:
            ON_A_MISSING_TOPIC[call](rig.driver)
        assert "conformance-nowhere" in str(caught.value)

    def test_clause_7_spans_leave_out_a_topic_that_is_not_there(self, rig: Rig) -> None:
        topic = rig.topic(partitions=2)
        rig.publish(child.numbered(topic, 5))
        there = rig.driver.spans([topic])
        assert len(there) == 2
        assert rig.driver.spans(["conformance-nowhere", topic, "conformance-nowhere-2"]) == there
        assert rig.driver.spans(["conformance-nowhere"]) == []
        assert rig.driver.spans(["conformance-nowhere"], 0.0, 1.0) == []

    @pytest.mark.parametrize("call", ON_AN_UNREACHABLE_LOG)
    def test_clause_7_an_unreachable_log_raises(self, rig: Rig, unreachable_url: str, call: str) -> None:
        driver = rig.connect(unreachable_url)
        with pytest.raises(MessagingException) as caught:
            ON_AN_UNREACHABLE_LOG[call](driver)
        assert isinstance(caught.value.retriable, bool)
        assert str(caught.value)

    @pytest.mark.parametrize("call", ON_AN_UNREACHABLE_LOG)
    def test_clause_7_a_closed_driver_raises(self, rig: Rig, call: str) -> None:
        driver = rig.connect()
        driver.close()
        with pytest.raises(MessagingException):
            ON_AN_UNREACHABLE_LOG[call](driver)

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_clause_7_an_odd_topic_name_works_or_raises(self, rig: Rig, name: str) -> None:
        try:
            rig.admin().create_topic(name, 1)
        except MessagingException:
            with pytest.raises(MessagingException):
                _publish(rig.driver, name)
            return
        _publish(rig.driver, name)
        assert values(rig.contents(name)) == [b"1"]

    def test_clause_7_an_unfit_partition_count_is_refused(self, rig: Rig) -> None:
        name = rig.name()
        with pytest.raises(MessagingException):
            rig.admin().create_topic(name, 0)
        assert name not in rig.admin().list_topics()

    def test_clause_7_unknown_settings_are_refused(self, rig: Rig) -> None:
        name = rig.name()
        with pytest.raises(MessagingException):
            rig.admin().create_topic(name, 1, {"no.such.setting": "1"})
        assert name not in rig.admin().list_topics()

    @pytest.mark.parametrize("call", BEYOND_THE_LOG)
    def test_clause_7_a_number_beyond_the_log_works_or_raises(self, rig: Rig, call: str) -> None:
        topic = rig.topic(partitions=3)
        rig.publish(child.numbered(topic, 64))
        middle = Partition(topic, 1)
        try:
            found = BEYOND_THE_LOG[call](rig.driver, middle)
        except MessagingException:
            found = 0
        assert found in (0, _held(rig.driver, middle))

    def test_close_may_come_twice(self, rig: Rig) -> None:
        driver = rig.connect()
        member = Member(driver.subscribe([rig.topic()], rig.name(), "earliest"))
        member.poll()
        member.subscription.close()
        member.subscription.close()
        driver.close()
        driver.close()
