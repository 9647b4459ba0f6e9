# ruff: noqa: S101
"""Clause 8: what threads may do at the same time."""

import functools
import threading
import time
from collections import defaultdict
from collections.abc import Callable

from notifier_kafka.contract.driver import Delivery, Limits, Record
from notifier_kafka.errors import MessagingException, OutboxFull
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.publishing import SettledRecords
from notifier_kafka.testing.conformance.rig import POLL_SECONDS, Member, Rig, offsets_of, positions_after


class Threads(Base):
    """One driver, used and closed from several threads."""

    def test_clause_8_threads_share_a_publisher(self, rig: Rig) -> None:
        topic = rig.topic()
        settled = SettledRecords()
        publisher = rig.driver.publisher(settled.add, Limits())

        def sender(key: bytes) -> Callable[[], None]:
            records = [Record(topic, b"%d" % n, key) for n in range(300)]
            return lambda: rig.offer(publisher, records)

        assert rig.run_together(*(sender(b"thread-%d" % n) for n in range(4))) == []
        assert publisher.flush(self.patience) == 0
        assert settled.failures == []
        found: dict[bytes | None, list[int]] = defaultdict(list)
        for delivery in rig.contents(topic):
            found[delivery.record.key].append(int(delivery.record.value or b"-1"))
        assert set(found) == {b"thread-%d" % n for n in range(4)}
        assert all(numbers == list(range(300)) for numbers in found.values())

    def test_clause_8_threads_read_while_others_publish(self, rig: Rig) -> None:
        topic = rig.topic()
        publisher = rig.driver.publisher(SettledRecords().add, Limits())
        counts: list[int] = []

        def read() -> None:
            last: list[int] = [0]
            for _ in range(10):
                spans = rig.driver.spans([topic])
                last.append(sum(1 for span in spans for _ in rig.driver.read(span)))
                assert last == sorted(last)
            counts.append(last[-1])

        def publish() -> None:
            rig.offer(publisher, child.numbered(topic, 500))

        assert rig.run_together(publish, read, read, publish) == []
        assert len(counts) == 2
        assert publisher.flush(self.patience) == 0
        assert len(rig.contents(topic)) == 1000

    def test_clause_8_the_driver_is_closed_while_others_use_it(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 200))
        driver = rig.connect()
        (span, *_) = driver.spans([topic])
        publisher = driver.publisher(SettledRecords().add, Limits())

        def publish() -> None:
            try:
                publisher.offer(Record(topic, b"more"))
            except OutboxFull:
                time.sleep(0.001)

        def close() -> None:
            time.sleep(0.2)
            driver.close()

        users = [lambda: driver.spans([topic]), lambda: list(driver.read(span)), publish]
        assert rig.run_together(close, *(self._until_refused(call) for call in users)) == []

    def test_clause_8_a_subscription_is_closed_from_another_thread(self, rig: Rig) -> None:
        topic = rig.topic()
        group = rig.name()
        member = rig.join(topic, group)
        polled, closed = threading.Event(), threading.Event()

        def poll() -> None:
            deadline = time.monotonic() + self.patience
            while time.monotonic() < deadline and not closed.is_set():
                try:
                    member.poll()
                except MessagingException:
                    return
                polled.set()

        def close() -> None:
            polled.wait(self.patience)
            member.subscription.close()
            closed.set()

        assert rig.run_together(poll, close) == []
        rig.publish(child.numbered(topic, 30))
        heir = rig.join(topic, group)
        rig.poll_for(30, heir, seconds=self.takeover)
        assert len(heir.deliveries) == 30

    def test_clause_8_the_driver_is_closed_during_a_poll(self, rig: Rig) -> None:
        topic = rig.topic()
        driver = rig.connect()
        subscription = driver.subscribe([topic], rig.name(), "earliest")
        closed = threading.Event()
        late: list[Delivery] = []

        def poll() -> None:
            while not closed.is_set():
                subscription.poll(10, 2 * POLL_SECONDS)
            rig.publish(child.numbered(topic, 10))
            late.extend(subscription.poll(10, POLL_SECONDS))

        def close() -> None:
            time.sleep(POLL_SECONDS)
            driver.close()
            closed.set()

        raised = rig.run_together(poll, close)
        assert [error for error in raised if not isinstance(error, MessagingException)] == []
        assert late == []

    def test_subscriptions_of_one_driver_may_live_in_different_threads(self, rig: Rig) -> None:
        topic = rig.topic()
        driver = rig.connect()
        members = [Member(driver.subscribe([topic], rig.name(), "earliest")) for _ in range(3)]

        def take(member: Member) -> None:
            rig.poll_for(200, member)
            member.subscription.commit(positions_after(member.deliveries))
            member.subscription.close()

        takers = [functools.partial(take, member) for member in members]
        assert rig.run_together(lambda: rig.publish(child.numbered(topic, 200)), *takers) == []
        assert [len(set(offsets_of(member.deliveries))) for member in members] == [200] * 3

    def _until_refused(self, call: Callable[[], object]) -> Callable[[], None]:
        """Repeat a call until it raises an error of ``notifier_kafka.errors``."""

        def repeat() -> None:
            deadline = time.monotonic() + self.patience
            while time.monotonic() < deadline:
                try:
                    call()
                except MessagingException:
                    return
            message = "the call still succeeds after close()"
            raise AssertionError(message)

        return repeat
