"""Transactions that become visible in part, too early or although aborted: clause 10."""

from typing import Any

from notifier_kafka.contract.driver import Limits, Receipt, Record
from tests.long.contract.saboteurs.base import Saboteur, Wrapped


class ShowsAtOnce(Saboteur):
    clause = 10
    caught_by = (
        "test_clause_10_nothing_is_seen_before_the_commit_or_after_an_abort",
        "test_clause_10_a_transaction_is_aborted_when_its_process_dies",
    )

    class transaction_class(Wrapped):  # noqa: N801
        def offer(self, record: Record) -> None:
            publisher = self.driver.inner.publisher(lambda *_: None, Limits())
            publisher.offer(record)
            publisher.flush(10)


class CommitsHalf(Saboteur):
    clause = 10
    caught_by = ("test_clause_10_a_transaction_appears_whole_when_it_commits",)

    class transaction_class(Wrapped):  # noqa: N801
        def __init__(self, inner: Any, driver: Saboteur) -> None:
            super().__init__(inner, driver)
            self.offered = 0

        def offer(self, record: Record) -> None:
            self.offered += 1
            if self.offered % 2:
                self.inner.offer(record)


class CommitsOnAbort(Saboteur):
    clause = 10
    caught_by = ("test_clause_10_nothing_is_seen_before_the_commit_or_after_an_abort",)

    class transaction_class(Wrapped):  # noqa: N801
        def abort(self) -> None:
            self.inner.commit(10)


class NeverEnds(Saboteur):
    clause = 10
    caught_by = (
        "test_clause_10_an_ended_transaction_takes_nothing_more",
        "test_clause_10_an_empty_transaction_commits_to_nothing",
    )

    class transaction_class(Wrapped):  # noqa: N801
        def commit(self, timeout: float) -> list[Receipt]:
            receipts: list[Receipt] = self.inner.commit(timeout)
            self.inner = self.driver.inner.transaction()
            return receipts or [None]  # type: ignore[list-item]

        def abort(self) -> None:
            pass


class ShufflesACommit(Saboteur):
    clause = 10
    caught_by = ("test_clause_10_records_of_a_key_keep_the_order_offered",)

    class transaction_class(Wrapped):  # noqa: N801
        def __init__(self, inner: Any, driver: Saboteur) -> None:
            super().__init__(inner, driver)
            self.kept: list[Record] = []

        def offer(self, record: Record) -> None:
            self.kept.append(record)

        def commit(self, timeout: float) -> list[Receipt]:
            for record in reversed(self.kept):
                self.inner.offer(record)
            receipts: list[Receipt] = self.inner.commit(timeout)
            return receipts[::-1]
