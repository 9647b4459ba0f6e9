"""From a publish call to the endpoint, at 1,000 a second, beside the bare client with the same linger."""

from contextlib import ExitStack

from benchmarks import measure, rows
from benchmarks.environment import Scene
from benchmarks.peers import Child
from benchmarks.rows import Row, Target

PACE = 1_000
KINDS = {"ours": "notifier-kafka", "bare": "bare confluent-kafka"}
GROUP = "end to end at 1,000/s, confluent-kafka"
NO_WORSE = Target("≤", 1.1)


def latency(scene: Scene) -> list[Row]:
    """Measure both ways in turn; between rounds nobody publishes."""
    bootstrap, count = scene.cluster.bootstrap, max(1, round(PACE * scene.size.latency_seconds))
    found: dict[str, measure.Rounds] = {"p50": {}, "p99": {}}
    with ExitStack() as stack:
        ways: dict[str, tuple[Child, Child]] = {}
        for kind in KINDS:
            topic = scene.topic()
            publisher = stack.enter_context(Child("latency", "publish", kind, bootstrap, topic))
            listener = stack.enter_context(Child("latency", "listen", kind, bootstrap, topic))
            ways[kind] = publisher, listener
            _send(*ways[kind], 1)  # connects both
        for number in range(scene.size.rounds):
            for kind, ends in ways.items():
                measure.say(f"round {number + 1}/{scene.size.rounds}: {KINDS[kind]}")
                for share, took in _send(*ends, count).items():
                    found[share].setdefault(kind, []).append(measure.Round(took))
    return [row for share in found for row in _rows(share, found[share])]


def _send(publisher: Child, listener: Child, count: int) -> dict[str, float]:
    publisher.ask("work", count)
    took: dict[str, float] = listener.ask("finish", count)
    return took


def _rows(share: str, found: measure.Rounds) -> list[Row]:
    row = rows.beside(GROUP, found, "ours", "bare", NO_WORSE)
    beside = f"{KINDS['bare']}: {share}"
    return [
        row._replace(name=f"{KINDS['ours']}: {share}", unit="µs", beside=beside),
        rows.alone(GROUP, found, "bare")._replace(name=beside, unit="µs"),
    ]
