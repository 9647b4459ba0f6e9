"""What the live view keeps in memory."""

from notifier_kafka.cli.output import live_view
from notifier_kafka.contract.driver import Delivery, Partition, Record
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec


def passed(*event_types: str) -> live_view.Counts:
    counts = live_view.Counts()
    for event_type in event_types:
        encoded = codec.encode(Notification("m", "p", event_type, "ERROR", {}, None, {}), "envelope")
        record = Record("t", encoded.value, None, encoded.headers)
        counts.add([Delivery(record, Partition("t", 0), 0, 0.0)])
    return counts


def test_of_a_long_name_only_the_beginning_is_kept() -> None:
    long = "compute." + "x" * 1_000_000
    counts = passed(long, f"{long}y", "x" * 255, "x" * 256)
    expected = {long[:254] + "…": 2, "x" * 255: 1, "x" * 254 + "…": 1}
    assert (counts.now, counts.total, counts.errors) == (expected, expected, expected)


def test_of_many_names_the_first_are_kept() -> None:
    counts = passed(*map(str, range(live_view.MAX_EVENT_TYPES + 2)), "7")
    assert len(counts.total) == live_view.MAX_EVENT_TYPES + 1
    assert (counts.total["(others)"], counts.total["7"]) == (2, 2)
