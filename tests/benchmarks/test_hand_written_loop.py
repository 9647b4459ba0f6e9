"""The hand-written loop makes the same metrics as the job, or the ratio would mean nothing."""

from typing import NamedTuple

import pytest

from benchmarks.spark import hand_written_loop, traffic
from notifier_kafka.driver import Delivery, Partition, Record
from spark_sinks.language import metrics_file
from tests.shared.spark import recount

NAMES = {
    "notifications.count": ("event_type", "publisher", "priority"),
    "notifications.error_share": ("publisher",),
    "notifications.duration": ("event_type", "percentile"),
    "notifications.busiest": ("rank", "value"),
    "notifications.latency": ("publisher",),
    "notifications.latency.max": (),
}


class Message(NamedTuple):
    """The parts of confluent-kafka's message that the loop reads."""

    record: Record
    stamp: int

    def value(self) -> bytes:
        assert self.record.value is not None
        return self.record.value

    def timestamp(self) -> tuple[int, int]:
        return 1, self.stamp


def test_the_same_metrics() -> None:
    records = list(traffic._records("t", 2000, 1))
    # With duplicates, and with ends before their starts.
    records = [*records[1000:], *records[:1000], *records[::50]]
    messages = [Message(record, 1_800_000_000_000 + 7 * number) for number, record in enumerate(records)]
    tally = hand_written_loop.Tally()
    tally.add(messages[:300])
    tally.add(messages[300:])
    deliveries = [
        Delivery(each.record, Partition("t", 0), number, each.stamp / 1000)
        for number, each in enumerate(messages)
    ]
    wanted = metrics_file.default()
    assert {metric.name for metric in wanted} == set(NAMES)
    truth = recount.rows(deliveries, wanted, behind=10**9, ahead=10**9)
    found = {
        (name, start, width, tuple(sorted(zip(NAMES[name], map(str, rest), strict=True)))): value
        for (name, start, width, *rest), value in tally.rows().items()
    }
    assert found == pytest.approx(truth, abs=1e-5)
