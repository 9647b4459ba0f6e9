"""Publishers that lose, repeat and reorder: clauses 1 and 2."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from notifier_kafka.contract.driver import Delivery, OnSettled, Partition, Publisher, Record, Span
from notifier_kafka.errors import DeliveryFailed, OutboxFull
from tests.long.contract.saboteurs.base import Saboteur, Wrapped

# Clause 1


class DropsEveryHundredth(Saboteur):
    clause = 1
    caught_by = (
        "test_clause_1_flushed_records_are_there_for_another_driver",
        "test_clause_1_every_record_is_settled_once_with_its_offset",
    )

    class publisher_class(Wrapped):  # noqa: N801
        count = itertools.count(1)

        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            if next(self.count) % 100:
                self.inner.offer(record, on_settled)


class KeepsInMemory(Saboteur):
    clause = 1
    caught_by = ("test_clause_1_flushed_records_survive_the_death_of_their_process",)

    class publisher_class(Wrapped):  # noqa: N801
        def __init__(self, inner: Publisher, driver: Saboteur) -> None:
            super().__init__(inner, driver)
            self.kept: list[tuple[Record, OnSettled | None]] = []

        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            self.kept.append((record, on_settled))

        def flush(self, timeout: float) -> int:
            return 0

        def close(self) -> None:
            for record, on_settled in self.kept:
                self.inner.offer(record, on_settled)
            self.inner.flush(10)
            self.inner.close()


class ForgetsTheUnsent(Saboteur):
    clause = 1
    caught_by = ("test_clause_1_close_reports_what_it_gives_up",)

    class publisher_class(Wrapped):  # noqa: N801
        def __init__(self, inner: Publisher, driver: Saboteur) -> None:
            super().__init__(inner, driver)
            self.kept: list[tuple[Record, OnSettled | None]] = []

        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            self.kept.append((record, on_settled))
            if len(self.kept) > 10:
                self.inner.offer(*self.kept.pop(0))

        def flush(self, timeout: float) -> int:
            while self.kept:
                self.inner.offer(*self.kept.pop(0))
            left: int = self.inner.flush(timeout)
            return left


class SettlesTwice(Saboteur):
    clause = 1
    caught_by = ("test_clause_1_every_record_is_settled_once_with_its_offset",)

    class publisher_class(Wrapped):  # noqa: N801
        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            def twice(fate: Any) -> None:
                if on_settled:
                    on_settled(fate)
                    on_settled(fate)

            self.inner.offer(record, on_settled and twice)


class TakesWhatItRefuses(Saboteur):
    clause = 1
    caught_by = (
        "test_clause_1_offer_after_close_is_refused",
        "test_clause_1_an_oversized_record_is_taken_or_refused",
    )

    class publisher_class(Wrapped):  # noqa: N801
        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            try:
                self.inner.offer(record, on_settled)
            except DeliveryFailed as error:
                if error.retriable:
                    raise


class DropsWhenFull(Saboteur):
    clause = 1
    caught_by = ("test_clause_1_a_full_outbox_refuses_and_keeps_what_it_accepted",)

    class publisher_class(Wrapped):  # noqa: N801
        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            try:
                self.inner.offer(record, on_settled)
            except OutboxFull:
                return


# Clause 2


class SwapsNeighbours(Saboteur):
    clause = 2
    caught_by = (
        "test_clause_2_records_of_a_key_are_read_in_the_order_offered",
        "test_clause_2_records_of_a_key_are_polled_in_the_order_offered",
    )

    class publisher_class(Wrapped):  # noqa: N801
        def __init__(self, inner: Publisher, driver: Saboteur) -> None:
            super().__init__(inner, driver)
            self.count = 0
            self.held: list[tuple[Record, OnSettled | None]] = []

        def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
            self.count += 1
            if self.count % 50 == 0:
                self.held.append((record, on_settled))
                return
            self.inner.offer(record, on_settled)
            if self.held and self.held[0][0].key == record.key:
                self.inner.offer(*self.held.pop())

        def flush(self, timeout: float) -> int:
            while self.held:
                self.inner.offer(*self.held.pop())
            left: int = self.inner.flush(timeout)
            return left


class PollsBackwards(Saboteur):
    clause = 2
    caught_by = ("test_clause_2_records_of_a_key_are_polled_in_the_order_offered",)

    class subscription_class(Wrapped):  # noqa: N801
        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            return list(reversed(self.inner.poll(limit, timeout)))


class ScattersKeys(Saboteur):
    clause = 2
    caught_by = ("test_clause_2_a_key_has_one_partition_for_all_publishers",)

    def read(self, span: Span) -> Iterator[Delivery]:
        for delivery in super().read(span):
            strayed = delivery.partition.number + len(delivery.record.value or b"")
            if delivery.record.value == b"2":
                yield delivery._replace(partition=Partition(delivery.partition.topic, strayed))
            else:
                yield delivery
