"""Each loss is counted under its reason and told of once."""

import logging

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import MessagingException, OutboxFull, SpoolFull
from notifier_kafka.stats.counters import Counters
from notifier_kafka.stats.losses import Losses

LOG = logging.getLogger("losses-under-test")
RECORD = Record("topic", b"value")


def test_a_lost_record_is_counted_by_its_error_and_reported_once() -> None:
    told: list[tuple[Record, MessagingException]] = []
    losses = Losses(Counters(LOG), lambda record, error: told.append((record, error)))
    full = OutboxFull("full")

    losses.lose(RECORD, full)

    assert losses.counters.lost() == {"OutboxFull": 1}
    assert told == [(RECORD, full)]


def test_without_a_function_and_without_records_losses_are_counted() -> None:
    losses = Losses(Counters(LOG))

    losses.lose(RECORD, SpoolFull("full"))
    losses.count("SpoolFull", 4, "a file that was deleted")
    losses.counters.add("handled")

    assert losses.counters.lost() == {"SpoolFull": 5}
