"""A publisher's counts in Prometheus' text format."""

from notifier_kafka.stats.publisher_stats import Stats


def test_each_count_has_its_help_its_type_and_its_value() -> None:
    stats = Stats(
        accepted=9, pending=1, spooled=2, forwarded=1, waiting=1, lost={"SpoolFull": 3, "OutboxFull": 4}
    )

    lines = stats.prometheus().splitlines()

    assert [line for line in lines if not line.startswith("#")] == [
        "notifier_kafka_accepted_total 9",
        "notifier_kafka_pending 1",
        "notifier_kafka_spooled_total 2",
        "notifier_kafka_forwarded_total 1",
        "notifier_kafka_waiting 1",
        'notifier_kafka_lost_total{reason="OutboxFull"} 4',
        'notifier_kafka_lost_total{reason="SpoolFull"} 3',
    ]
    assert "# TYPE notifier_kafka_pending gauge" in lines
    assert "# TYPE notifier_kafka_lost_total counter" in lines
    assert sum(line.startswith("# HELP ") for line in lines) == 6
