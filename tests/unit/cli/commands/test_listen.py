"""How listen waits: it waits out an outage after a good start, and fails if there was none."""

from collections.abc import Sequence

import pytest

from notifier_kafka.cli import follow
from notifier_kafka.cli.commands import listen
from notifier_kafka.contract.driver import Delivery, Partition, Positions, Record
from notifier_kafka.errors import CommitRefused, TransportUnavailable

AWAY = TransportUnavailable("the log is away")


def delivery(partition: int, offset: int) -> Delivery:
    return Delivery(Record("t", b"x"), Partition("t", partition), offset, 0.0)


class ScriptedSubscription:
    """A subscription of a third party's driver, with the given results of each poll."""

    def __init__(self, *polls: Sequence[Delivery] | TransportUnavailable) -> None:
        self.polls = list(polls)
        self.lost: frozenset[tuple[str, int]] = frozenset()
        self.committed: dict[Partition, int] = {}

    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        outcome = self.polls.pop(0) if self.polls else ()
        if isinstance(outcome, TransportUnavailable):
            raise outcome
        return outcome

    def commit(self, positions: Positions) -> None:
        if self.lost & set(positions):
            raise CommitRefused("t[1] is another's now", self.lost)
        self.committed.update(positions)

    def seek(self, positions: Positions) -> None: ...

    def close(self) -> None: ...


def test_an_outage_after_a_good_start_is_noted_once_and_waited_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    poller = follow.Poller(ScriptedSubscription([delivery(0, 0)], AWAY, AWAY, [delivery(0, 1)]), None)
    assert [len(poller.poll(10)) for _ in range(4)] == [1, 0, 0, 1]
    assert not poller.timed_out
    assert capsys.readouterr().err == "notifier-kafka: the log is away; waiting for it to come back\n"


@pytest.mark.parametrize("before", [[], [()], [(), ()]])
def test_an_outage_from_the_start_is_an_error(before: list[Sequence[Delivery]]) -> None:
    """Polls are empty until a broker's refusal arrives."""
    poller = follow.Poller(ScriptedSubscription(*before, AWAY), None)
    assert [poller.poll(10) for _ in before] == before
    with pytest.raises(TransportUnavailable):
        poller.poll(10)


def test_an_outage_of_a_log_that_was_quiet_for_long_is_waited_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(follow, "STARTUP_SECONDS", 0.0)
    poller = follow.Poller(ScriptedSubscription((), AWAY, [delivery(0, 0)]), None)
    assert [len(poller.poll(10)) for _ in range(3)] == [0, 0, 1]
    assert "waiting for it to come back" in capsys.readouterr().err


def test_a_timeout_that_passes_in_an_outage_is_no_success() -> None:
    poller = follow.Poller(ScriptedSubscription((), AWAY), 0.2)
    assert poller.poll(10) == ()
    with pytest.raises(TransportUnavailable):
        poller.poll(10)


def test_a_timeout_counts_from_what_came_last() -> None:
    poller = follow.Poller(ScriptedSubscription(), 0.0)
    assert poller.poll(10) == ()
    assert poller.timed_out


def test_partitions_that_went_to_another_do_not_keep_the_rest_from_being_committed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    subscription = ScriptedSubscription()
    subscription.lost = frozenset({("t", 1)})
    listen._commit(subscription, [delivery(0, 4), delivery(0, 5), delivery(1, 7)])
    assert subscription.committed == {Partition("t", 0): 6}
    assert "another listener of the pool will print these again" in capsys.readouterr().err
