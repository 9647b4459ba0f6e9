# ruff: noqa: S101
"""Spans; and keys, values and headers, which are read as they were published."""

import time

import pytest

from notifier_kafka.contract.driver import Record, Span
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.rig import Rig, count_offsets, values

RECORDS = {
    "null key": Record("", b"value", None),
    "empty key": Record("", b"value", b""),
    "binary key": Record("", b"value", bytes(range(256))),
    "empty value": Record("", b"", b"key"),
    "tombstone": Record("", None, b"key"),
    "tombstone without key": Record("", None, None),
    "binary value": Record("", bytes(range(256)) * 3, b"key"),
    "large value": Record("", bytes(range(256)) * 1024, b"key"),
    "headers": Record("", b"value", b"key", (("one", b"1"), ("two", b"\x00\xff"))),
    "repeated headers": Record("", b"value", b"key", (("a", b"1"), ("b", b"2"), ("a", b"3"), ("a", b"1"))),
    "empty header": Record("", b"value", b"key", (("empty", b""),)),
    "unicode header": Record("", b"value", b"key", (("größe-大", "größe".encode()),)),
    "many headers": Record("", b"value", b"key", tuple((f"h{n}", b"%d" % n) for n in range(100))),
}


class Reading(Base):
    """Reading without a group."""

    @pytest.mark.parametrize("kind", RECORDS)
    def test_a_record_is_read_and_polled_as_it_was_offered(self, rig: Rig, kind: str) -> None:
        topic = rig.topic()
        record = RECORDS[kind]._replace(topic=topic)
        rig.publish([record])
        member = rig.join(topic, rig.name())
        rig.poll_for(1, member)
        (read,) = rig.contents(topic)
        (polled,) = member.deliveries
        assert read.record == record
        assert polled == read
        assert isinstance(read.record.value, bytes | None)
        assert isinstance(read.record.headers, tuple)

    def test_a_delivery_has_its_offset_and_time(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 3))
        deliveries = rig.contents(topic)
        assert [(d.partition.topic, d.partition.number, d.offset) for d in deliveries] == [
            (topic, 0, n) for n in range(3)
        ]
        # One hour of tolerance for the clock of another machine: this checks the unit and the epoch.
        assert all(abs(delivery.timestamp - time.time()) < 3600 for delivery in deliveries)

    def test_spans_hold_what_was_published(self, rig: Rig) -> None:
        topic = rig.topic(partitions=3)
        assert count_offsets(rig.driver.spans([topic])) == 0
        rig.publish(child.numbered(topic, 70))
        spans = rig.driver.spans([topic])
        assert {span.partition.number for span in spans} == {0, 1, 2}
        assert count_offsets(spans) == 70
        assert all(span.start == 0 for span in spans)

    def test_spans_between_two_times_hold_what_came_then(self, rig: Rig) -> None:
        topic = rig.topic()
        moments = []
        for batch in range(3):
            rig.publish(child.numbered(topic, 20, first=20 * batch))
            time.sleep(0.1)
            newest = [d for d in rig.contents(topic) if int(d.record.value or b"0") >= 20 * batch]
            moments.append(min(delivery.timestamp for delivery in newest))

        def between(since: float | None, until: float | None) -> list[int]:
            spans = rig.driver.spans([topic], since, until)
            return sorted(int(d.record.value or b"") for span in spans for d in rig.driver.read(span))

        assert between(moments[1], moments[2]) == list(range(20, 40))
        assert between(moments[1], None) == list(range(20, 60))
        assert between(None, moments[1]) == list(range(20))
        assert between(moments[2] + 3600, None) == []
        assert between(None, moments[0]) == []

    def test_a_span_reads_the_same_again(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        spans = rig.driver.spans([topic])
        rig.publish(child.numbered(topic, 30, first=30))
        once, again = ([d for span in spans for d in rig.driver.read(span)] for _ in range(2))
        assert once == again
        assert values(once) == sorted(b"%d" % n for n in range(30))

    def test_spans_of_several_topics(self, rig: Rig) -> None:
        topics = [rig.topic(partitions=1), rig.topic(partitions=2)]
        rig.publish([*child.numbered(topics[0], 5), *child.numbered(topics[1], 7)])
        spans = rig.driver.spans(topics)
        assert {span.partition.topic for span in spans} == set(topics)
        assert count_offsets(spans) == 12
        assert all(isinstance(span, Span) for span in spans)
