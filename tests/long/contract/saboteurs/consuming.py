"""Wrong positions and wrong owners: clauses 3 to 6."""

from collections.abc import Sequence

from notifier_kafka.contract.driver import Delivery, Partition, Positions, Start, Subscription
from notifier_kafka.errors import CommitRefused, MessagingException
from tests.long.contract.saboteurs.base import Saboteur, Wrapped

# Clause 3


class Stutters(Saboteur):
    clause = 3
    caught_by = ("test_clause_3_no_offset_twice_while_the_partition_is_owned",)

    class subscription_class(Wrapped):  # noqa: N801
        last: tuple[Delivery, ...] = ()

        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            deliveries = self.inner.poll(limit - len(self.last), timeout)
            again, self.last = self.last, tuple(deliveries[-1:])
            return [*again, *deliveries]


class DeafToSeek(Saboteur):
    clause = 3
    caught_by = (
        "test_clause_3_seek_back_yields_again_from_there",
        "test_clause_3_seek_forward_skips",
    )

    class subscription_class(Wrapped):  # noqa: N801
        def seek(self, positions: Positions) -> None: ...


class RewindsOnCommit(Saboteur):
    clause = 3
    caught_by = ("test_clause_3_a_commit_causes_no_redelivery",)

    class subscription_class(Wrapped):  # noqa: N801
        def commit(self, positions: Positions) -> None:
            self.inner.commit(positions)
            self.inner.seek(positions)


# Clause 4


class ForgetsCommits(Saboteur):
    clause = 4
    caught_by = ("test_clause_4_commit_covers_all_offsets_before",)

    class subscription_class(Wrapped):  # noqa: N801
        def commit(self, positions: Positions) -> None: ...


class MovesBack(Saboteur):
    clause = 4
    caught_by = ("test_clause_4_commit_never_moves_back",)

    class subscription_class(Wrapped):  # noqa: N801
        def __init__(self, inner: Subscription, driver: Saboteur) -> None:
            super().__init__(inner, driver)
            self.last: Positions = {}

        def commit(self, positions: Positions) -> None:
            self.inner.commit(positions)
            self.last = positions

        def close(self) -> None:
            self.inner.close()
            if self.last and self.driver.group:
                self.driver.admin().reset_group(self.driver.group, self.last)


class IgnoresRefusal(Saboteur):
    clause = 4
    caught_by = (
        "test_clause_4_commit_of_a_lost_partition_is_refused_and_changes_nothing",
        "test_clause_4_commit_after_close_is_refused_and_changes_nothing",
        "test_clause_4_a_member_that_was_stopped_too_long_is_refused",
    )

    class subscription_class(Wrapped):  # noqa: N801
        def commit(self, positions: Positions) -> None:
            try:
                self.inner.commit(positions)
            except CommitRefused:
                return


class CommitsTheRest(Saboteur):
    clause = 4
    caught_by = ("test_clause_4_commit_of_a_lost_partition_is_refused_and_changes_nothing",)

    class subscription_class(Wrapped):  # noqa: N801
        def commit(self, positions: Positions) -> None:
            try:
                self.inner.commit(positions)
            except CommitRefused as refusal:
                rest = {p: n for p, n in positions.items() if p not in refusal.partitions}
                self.inner.commit(rest)
                raise


# Clause 5


class CommitsOnClose(Saboteur):
    clause = 5
    caught_by = ("test_clause_5_close_hands_over_what_was_not_committed",)

    class subscription_class(Wrapped):  # noqa: N801
        def __init__(self, inner: Subscription, driver: Saboteur) -> None:
            super().__init__(inner, driver)
            self.polled: dict[Partition, int] = {}

        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            deliveries: Sequence[Delivery] = self.inner.poll(limit, timeout)
            self.polled |= {d.partition: d.offset + 1 for d in deliveries}
            return deliveries

        def close(self) -> None:
            try:
                self.inner.commit(self.polled)
            except MessagingException:
                self.polled = {}
            self.inner.close()


class CommitsOnPoll(Saboteur):
    clause = 5
    caught_by = (
        "test_clause_5_close_hands_over_what_was_not_committed",
        "test_clause_5_closing_the_driver_hands_over_what_was_not_committed",
        "test_clause_5_a_killed_member_s_records_go_to_another",
    )

    class subscription_class(Wrapped):  # noqa: N801
        def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
            deliveries: Sequence[Delivery] = self.inner.poll(limit, timeout)
            self.inner.commit({d.partition: d.offset + 1 for d in deliveries})
            return deliveries


class LivesOnAfterClose(Saboteur):
    clause = 5
    caught_by = ("test_clause_5_a_closed_subscription_yields_nothing",)

    class subscription_class(Wrapped):  # noqa: N801
        def close(self) -> None: ...


# Clause 6


class OneGroupForAll(Saboteur):
    clause = 6
    caught_by = (
        "test_clause_6_every_group_gets_everything",
        "test_clause_6_a_commit_moves_no_other_group",
    )

    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> Subscription:
        return super().subscribe(topics, "everybody", start)


class EveryMemberAlone(Saboteur):
    clause = 6
    caught_by = (
        "test_clause_6_within_a_group_a_partition_has_one_owner",
        "test_clause_6_more_members_than_partitions_share_without_overlap",
    )

    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> Subscription:
        return super().subscribe(topics, None, start)


class NoGroupIsShared(Saboteur):
    clause = 6
    caught_by = ("test_clause_6_each_member_without_a_group_gets_everything",)

    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> Subscription:
        return super().subscribe(topics, group or "nobody", start)
