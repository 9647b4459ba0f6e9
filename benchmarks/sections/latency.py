"""The time from a publishing call to the endpoint, beside the bare client with the same linger."""

from contextlib import ExitStack

from benchmarks import measure, rows
from benchmarks.environment import Environment
from benchmarks.peers import Child
from benchmarks.rows import Goal, Row

CALLS_PER_SECOND = 1_000
KINDS = {"ours": "notifier-kafka", "bare": "bare confluent-kafka"}
GROUP = "end to end at 1,000/s, confluent-kafka"
NO_WORSE = Goal("≤", 1.1)


def latency(environment: Environment) -> list[Row]:
    """Measure both pairs of processes in turn; only one pair runs at a time."""
    bootstrap, count = (
        environment.cluster.bootstrap,
        max(1, round(CALLS_PER_SECOND * environment.size.latency_seconds)),
    )
    found: dict[str, measure.Rounds] = {"p50": {}, "p99": {}}
    with ExitStack() as stack:
        pairs: dict[str, tuple[Child, Child]] = {}
        for kind in KINDS:
            topic = environment.create_topic()
            publisher = stack.enter_context(Child("latency_probe", "publish", kind, bootstrap, topic))
            listener = stack.enter_context(Child("latency_probe", "listen", kind, bootstrap, topic))
            pairs[kind] = publisher, listener
            _send(*pairs[kind], 1)  # connects both
        for number in range(environment.size.rounds):
            for kind, ends in pairs.items():
                measure.report_progress(f"round {number + 1}/{environment.size.rounds}: {KINDS[kind]}")
                for share, took in _send(*ends, count).items():
                    found[share].setdefault(kind, []).append(measure.Round(took))
    return [row for share in found for row in _rows(share, found[share])]


def _send(publisher: Child, listener: Child, count: int) -> dict[str, float]:
    publisher.request("work", count)
    took: dict[str, float] = listener.request("finish", count)
    return took


def _rows(share: str, found: measure.Rounds) -> list[Row]:
    row = rows.make_ratio_row(GROUP, found, "ours", "bare", NO_WORSE)
    beside = f"{KINDS['bare']}: {share}"
    return [
        row._replace(name=f"{KINDS['ours']}: {share}", unit="µs", beside=beside),
        rows.make_row(GROUP, found, "bare")._replace(name=beside, unit="µs"),
    ]
