# ruff: noqa: S101
"""Clause 9: how long a call may take, and what may do I/O."""

import json
import time

from notifier_kafka.contract.driver import Driver, Partition, Span
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.rig import Rig


class Construction(Base):
    """Bounds on time and I/O."""

    def test_clause_9_import_and_construction_do_no_io(self, rig: Rig) -> None:
        watched = rig.child("watch")
        said = rig.wait_for_output(watched, "\n", self.takeover)
        assert json.loads(said.splitlines()[-1]) == []

    def test_clause_9_construction_on_an_unreachable_log_succeeds(
        self, rig: Rig, unreachable_url: str
    ) -> None:
        driver = rig.connect(unreachable_url)
        assert isinstance(driver, Driver)
        driver.close()

    def test_clause_9_poll_returns_within_its_timeout(self, rig: Rig) -> None:
        member = rig.join(rig.topic(), rig.name())
        for timeout in (0.0, 0.3, 0.3, 0.0):
            began = time.monotonic()
            assert list(member.poll(10, timeout)) == []
            assert time.monotonic() - began < timeout + self.margin

    def test_clause_9_poll_does_not_wait_for_its_limit(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 5))
        member = rig.join(topic, rig.name())
        began = time.monotonic()
        assert member.poll(1000, 2 * self.patience)
        assert time.monotonic() - began < self.patience

    def test_clause_9_poll_waits_for_records_that_arrive_meanwhile(self, rig: Rig) -> None:
        topic = rig.topic()
        member = rig.join(topic, rig.name())
        rig.poll_for_more(member)

        def publish() -> None:
            time.sleep(0.5)
            rig.publish(child.numbered(topic, 5))

        assert rig.run_together(lambda: member.poll(5, self.patience), publish) == []
        assert member.deliveries

    def test_clause_9_poll_keeps_to_its_limit(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 40))
        member = rig.join(topic, rig.name())
        sizes: list[int] = []

        def enough() -> bool:
            sizes.append(len(member.poll(limit=3)))
            return sum(sizes) >= 40

        rig.wait_until(enough, "all records")
        assert max(sizes) <= 3

    def test_clause_9_read_ends_at_its_stop(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 50))
        partition = Partition(topic, 0)
        for start, stop in ((0, 50), (10, 20), (49, 50), (20, 20)):
            assert self._offsets(rig, Span(partition, start, stop)) == list(range(start, stop))

    def test_clause_9_read_ends_over_a_gap(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 20))
        (before,) = rig.driver.spans([topic])
        rig.admin().purge_topic(topic)
        assert self._offsets(rig, before) == []
        rig.publish(child.numbered(topic, 5))
        (now,) = rig.driver.spans([topic])
        whole = Span(now.partition, before.start, now.stop)
        assert self._offsets(rig, whole) == list(range(before.stop, now.stop))

    def test_a_read_may_be_abandoned(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 50))
        deliveries = rig.driver.read(Span(Partition(topic, 0), 0, 50))
        assert next(deliveries).offset == 0
        assert next(deliveries).offset == 1
        del deliveries
        rig.publish(child.numbered(topic, 5))
        assert len(rig.contents(topic)) == 55

    def _offsets(self, rig: Rig, span: Span) -> list[int]:
        """Read a span in a thread, so that a read that does not end fails the test."""
        offsets: list[int] = []
        assert rig.run_together(lambda: offsets.extend(d.offset for d in rig.driver.read(span))) == []
        return offsets
