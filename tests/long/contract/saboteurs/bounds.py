"""Errors, threads and time: clauses 7, 8 and 9."""

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from notifier_kafka.contract.driver import Admin, Delivery, OnSettled, Record, Span, TopicDescription
from notifier_kafka.errors import MessagingException, TopicNotFound
from notifier_kafka.url import TransportURL
from tests.long.contract.saboteurs.base import Saboteur, Wrapped

# Clause 7


class LeaksForeignErrors(Saboteur):
    clause = 7
    caught_by = ("test_clause_7_a_missing_topic_is_topic_not_found[describe]",)

    class LeakyAdmin(Wrapped):
        def describe_topic(self, name: str) -> TopicDescription:
            try:
                described: TopicDescription = self.inner.describe_topic(name)
            except TopicNotFound:
                raise sqlite3.OperationalError("no such table: topic_7") from None
            return described

    def admin(self) -> Admin:
        return self.LeakyAdmin(super().admin(), self)


class FailsOnAMissingTopic(Saboteur):
    clause = 7
    caught_by = ("test_clause_7_spans_leave_out_a_topic_that_is_not_there",)

    def spans(
        self, topics: Sequence[str], since: float | None = None, until: float | None = None
    ) -> list[Span]:
        for topic in topics:
            self.admin().describe_topic(topic)
        return super().spans(topics, since, until)


class LeaksWhenClosed(Saboteur):
    clause = 7
    caught_by: ClassVar[tuple[str, ...]] = ("test_clause_7_a_closed_driver_raises[spans]",)
    gone = False

    def close(self) -> None:
        self.gone = True
        super().close()

    def spans(
        self, topics: Sequence[str], since: float | None = None, until: float | None = None
    ) -> list[Span]:
        if self.gone:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
        return super().spans(topics, since, until)


class LeaksSystemErrors(Saboteur):
    clause = 7
    caught_by = ("test_clause_7_an_unreachable_log_raises[publish]",)

    class publisher_class(Wrapped):  # noqa: N801
        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            def raw(fate: Any) -> None:
                if on_settled:
                    on_settled(OSError("disk") if isinstance(fate, Exception) else fate)  # type: ignore[arg-type]

            self.inner.offer(record, on_settled and raw)


class RenamesOddTopics(Saboteur):
    clause = 7
    caught_by = ("test_clause_7_an_odd_topic_name_works_or_raises[a/b]",)

    class publisher_class(Wrapped):  # noqa: N801
        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            self.inner.offer(record._replace(topic=record.topic.replace("/", "-")), on_settled)


class IgnoresWhatItCannotCreate(Saboteur):
    clause = 7
    caught_by = (
        "test_clause_7_an_unfit_partition_count_is_refused",
        "test_clause_7_unknown_settings_are_refused",
    )

    class LaxAdmin(Wrapped):
        def create_topic(self, name: str, *shape: Any) -> None:
            try:
                self.inner.create_topic(name, *shape)
            except MessagingException:
                return

    def admin(self) -> Admin:
        return self.LaxAdmin(super().admin(), self)


class CountsInSixtyFourBits(Saboteur):
    clause = 7
    caught_by = ("test_clause_7_a_number_beyond_the_log_works_or_raises[read to 2**64]",)

    def read(self, span: Span) -> Iterator[Delivery]:
        if span.stop >= 2**63:
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        return super().read(span)


# Clause 8


class ClosesUnderItsUsers(LeaksWhenClosed):
    clause = 8
    caught_by = (
        "test_clause_8_the_driver_is_closed_while_others_use_it",
        "test_clause_8_the_driver_is_closed_during_a_poll",
    )

    class subscription_class(Wrapped):  # noqa: N801
        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            deliveries: Sequence[Delivery] = self.inner.poll(limit, timeout)
            if getattr(self.driver, "gone", False):
                raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
            return deliveries


class SharesASlot(Saboteur):
    clause = 8
    caught_by = ("test_clause_8_threads_share_a_publisher",)

    class publisher_class(Wrapped):  # noqa: N801
        slot: Record

        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            self.slot = record
            time.sleep(0.0001)
            self.inner.offer(self.slot, on_settled)


class ClosesInItsOwnThreadOnly(Saboteur):
    clause = 8
    caught_by = ("test_clause_8_a_subscription_is_closed_from_another_thread",)

    class subscription_class(Wrapped):  # noqa: N801
        owner: int | None = None

        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            self.owner = threading.get_ident()
            deliveries: Sequence[Delivery] = self.inner.poll(limit, timeout)
            return deliveries

        def close(self) -> None:
            if self.owner not in (None, threading.get_ident()):
                raise sqlite3.ProgrammingError("objects created in a thread can only be used in it")
            self.inner.close()


class ServesOneReaderOnly(Saboteur):
    clause = 8
    caught_by = ("test_clause_8_threads_read_while_others_publish",)
    reading = False

    def read(self, span: Span) -> Iterator[Delivery]:
        if self.reading:
            raise RuntimeError("dictionary changed size during iteration")
        self.reading = True
        time.sleep(0.01)
        yield from super().read(span)
        self.reading = False


# Clause 9


class OverstaysInPoll(Saboteur):
    clause = 9
    caught_by = ("test_clause_9_poll_returns_within_its_timeout",)

    class subscription_class(Wrapped):  # noqa: N801
        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            deliveries: Sequence[Delivery] = self.inner.poll(limit, timeout)
            if not deliveries:
                time.sleep(3)
            return deliveries


class WaitsForAFullBatch(Saboteur):
    clause = 9
    caught_by = ("test_clause_9_poll_does_not_wait_for_its_limit",)

    class subscription_class(Wrapped):  # noqa: N801
        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            deliveries: list[Delivery] = []
            deadline = time.monotonic() + timeout
            while len(deliveries) < limit and time.monotonic() < deadline:
                deliveries += self.inner.poll(limit - len(deliveries), 0.1)
            return deliveries


class IgnoresTheLimit(Saboteur):
    clause = 9
    caught_by = ("test_clause_9_poll_keeps_to_its_limit",)

    class subscription_class(Wrapped):  # noqa: N801
        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            deliveries: Sequence[Delivery] = self.inner.poll(500, timeout)
            return deliveries


class ReadsPastTheStop(Saboteur):
    clause = 9
    caught_by = ("test_clause_9_read_ends_at_its_stop",)

    def read(self, span: Span) -> Iterator[Delivery]:
        return super().read(span._replace(stop=span.stop + 1))


class HangsOverGaps(Saboteur):
    clause = 9
    caught_by = ("test_clause_9_read_ends_over_a_gap",)
    gone = False

    def read(self, span: Span) -> Iterator[Delivery]:
        missing = span.stop - span.start
        for delivery in super().read(span):
            missing -= 1
            yield delivery
        while missing and not self.gone:
            time.sleep(0.05)

    def close(self) -> None:
        self.gone = True
        super().close()


class PollsWithoutWaiting(Saboteur):
    clause = 9
    caught_by = ("test_clause_9_poll_waits_for_records_that_arrive_meanwhile",)

    class subscription_class(Wrapped):  # noqa: N801
        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            deliveries: Sequence[Delivery] = self.inner.poll(limit, min(timeout, 0.01))
            return deliveries


class OpensInTheConstructor(Saboteur):
    clause = 9
    caught_by = ("test_clause_9_import_and_construction_do_no_io",)

    def __init__(self, url: TransportURL) -> None:
        super().__init__(url)
        with open(f"{url.virtual_host}.lock", "a") as lock:
            lock.write("")


class ConnectsInTheConstructor(Saboteur):
    clause = 9
    caught_by = (
        "test_clause_9_import_and_construction_do_no_io",
        "test_clause_9_construction_on_an_unreachable_log_succeeds",
    )

    def __init__(self, url: TransportURL) -> None:
        super().__init__(url)
        self.admin().list_topics()
