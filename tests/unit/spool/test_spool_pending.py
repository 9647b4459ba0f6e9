"""What the bus's client has taken: where it is besides, and what becomes of it."""

import logging

import pytest

from notifier_kafka.contract.driver import Partition, Receipt, Record
from notifier_kafka.errors import DeliveryGivenUp, TransportUnavailable
from notifier_kafka.spool.spool_pending import Pending
from notifier_kafka.stats import losses
from notifier_kafka.stats.counters import Counters


def test_a_copy_of_what_a_client_refused_is_not_sent_as_well() -> None:
    pending = Pending(10, losses.Losses(Counters(logging.getLogger())), lambda why: None)
    record = Record("t", b"1")
    number, other = pending.hold(record), pending.hold(record)
    assert [held for held, _ in pending.uncopied()] == [number, other]
    pending.note_copies([number])
    # Its client had no room after all: it goes to the back of the spool.
    pending.drop(number)
    assert pending.done == {number}
    assert (list(pending.records), pending.unsafe()) == ([other], 1)


@pytest.mark.parametrize("while_it_is_written", [False, True])
def test_a_copy_that_had_no_room_is_made_again_when_its_client_gives_up(*, while_it_is_written: bool) -> None:
    counters = Counters(logging.getLogger())
    pending = Pending(10, losses.Losses(counters), lambda why: None)
    number, other = (pending.hold(Record("t", b"1")) for _ in range(2))
    pending.uncopied()
    if while_it_is_written:
        assert pending.uncopy(number)
        pending.note_copies([number, other])
    else:
        pending.note_copies([number, other])
        assert pending.uncopy(number)
    assert pending.unsafe() == 1
    pending.settle(number, TransportUnavailable("away"))
    assert pending.failed()
    assert [held for held, _ in pending.uncopied()] == [number]
    pending.note_copies([number])
    assert (list(pending.records), pending.failed(), pending.unsafe()) == ([other], False, 0)
    assert counters.counts() == {}
    # What no client has any more is lost with its copy, and what the bus has is not.
    assert not pending.uncopy(number)
    pending.settle(other, Receipt(Partition("t", 0), 0))
    assert pending.uncopy(other)


def pending(counters: Counters | None = None) -> Pending:
    return Pending(10, losses.Losses(counters or Counters(logging.getLogger())), lambda why: None)


def test_a_copy_that_had_to_go_is_not_made_again_while_the_client_has_the_record() -> None:
    held = pending()
    number = held.hold(Record("t", b"1"))
    held.uncopied()
    held.note_copies([number])
    assert held.uncopy(number)
    assert (held.uncopied(), held.unsafe()) == ([], 1)
    held.settle(number, Receipt(Partition("t", 0), 0))
    assert held.unsafe() == 0
    # As it would be with the next one.
    other = held.hold(Record("t", b"1"))
    assert (held.uncopied(), held.unsafe()) == ([(other, Record("t", b"1"))], 1)


def test_what_its_client_gave_up_is_lost_where_its_copy_finds_no_room() -> None:
    counters = Counters(logging.getLogger())
    held = pending(counters)
    number = held.hold(Record("t", b"1"))
    held.settle(number, TransportUnavailable("away"))
    assert [found for found, _ in held.uncopied()] == [number]
    assert not held.uncopy(number)
    held.note_copies([number])
    assert (held.records, held.failed(), held.unsafe(), held.uncopied()) == ({}, False, 0, [])
    # Who asked tells of it.
    assert counters.counts() == {}


def test_a_copy_that_goes_when_its_client_ends_is_counted_with_its_record() -> None:
    counters = Counters(logging.getLogger())
    held = pending(counters)
    kept, dropped = (held.hold(Record("t", b"1")) for _ in range(2))
    held.uncopied()
    held.note_copies([kept, dropped])
    assert held.uncopy(dropped)
    held.end()
    for number in (kept, dropped):
        held.settle(number, DeliveryGivenUp("the publisher was closed"))
    assert counters.counts() == {"lost.DeliveryGivenUp": 1}
    assert (list(held.records), held.unsafe()) == ([kept], 0)


@pytest.mark.parametrize("asked", ["done", "copied"])
def test_a_copy_that_goes_while_its_record_is_acknowledged_is_no_loss(asked: str) -> None:
    """Which the thread that acknowledges does in steps, without a lock."""
    held = pending()
    number = held.hold(Record("t", b"1"))
    held.uncopied()
    held.note_copies([number])
    found: list[bool] = []

    class Asks(set[int]):
        def add(self, element: int) -> None:
            found.append(held.uncopy(number))
            super().add(element)

        def discard(self, element: object) -> None:
            found.append(held.uncopy(number))
            super().discard(element)

    if asked == "done":
        held.done = Asks()
    else:
        held._copied = Asks(held._copied)
    held.settle(number, Receipt(Partition("t", 0), 0))
    assert found
    assert all(found)
