"""A loop as a user would write it: one process with confluent-kafka and orjson, into dicts.

It makes the default metrics, as the job does: counts, the share of errors, durations, the busiest
publishers and latencies, by minute, hour and day, deduplicated within an hour. It does not handle
crashes, late and malformed notifications.
"""

import datetime
import math
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import orjson

from benchmarks.bare_clients import TIMEOUT_SECONDS, InvalidMeasurement
from benchmarks.spark.traffic import PARTITIONS

DEDUPLICATION_SECONDS = 3600.0
WIDTHS_SECONDS = (60, 3600, 86_400)
PERCENTILES = (50, 95, 99)
TOP_COUNT = 10
Key = tuple[Any, ...]


def run_loop(bootstrap: str, count: int, topic: str = "bench.info") -> dict[Key, float]:
    """Make the metrics of a topic."""
    from confluent_kafka import Consumer, TopicPartition

    own = {"bootstrap.servers": bootstrap, "group.id": str(uuid.uuid4()), "enable.auto.commit": False}
    consumer = Consumer(own)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    tally = Tally()
    left = count
    while left:
        found = consumer.consume(min(left, 1_000), TIMEOUT_SECONDS)
        if not found:
            raise InvalidMeasurement(f"{left} did not arrive")
        tally.add(found)
        left -= len(found)
    consumer.close()
    return tally.rows()


class Tally:
    """The counts so far, by minute; wider windows are sums of these."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.counts: Counter[Key] = Counter()
        self.latencies: defaultdict[Key, float] = defaultdict(float)
        self.slowest: dict[int, float] = {}
        self.starts: defaultdict[Key, list[float]] = defaultdict(list)
        self.ends: list[tuple[str, str, float]] = []

    def add(self, messages: Iterable[Any]) -> None:
        """Count messages, in one function body: calls would cost most of the time."""
        seen, counts, latencies, slowest = self.seen, self.counts, self.latencies, self.slowest
        starts, ends, moment, parse = self.starts, self.ends, datetime.datetime.fromisoformat, orjson.loads
        for message in messages:
            logged = message.timestamp()[1] / 1000
            one = parse(parse(message.value())["oslo.message"])
            own = one["message_id"]
            before = seen.get(own)
            seen[own] = logged
            if before is not None and logged - before <= DEDUPLICATION_SECONDS:
                continue
            event_type, publisher = one["event_type"], one["publisher_id"]
            at = moment(one["timestamp"] + "+00:00").timestamp()
            minute = int(at) // 60 * 60
            counts[minute, event_type, publisher, one["priority"]] += 1
            latency = logged - at
            latencies[minute, publisher] += latency
            if latency > slowest.get(minute, -math.inf):
                slowest[minute] = latency
            if event_type.endswith(".start"):
                starts[event_type[:-6], one["payload"]["instance_id"]].append(at)
            elif event_type.endswith(".end"):
                ends.append((event_type, one["payload"]["instance_id"], at))

    def rows(self) -> dict[Key, float]:
        """Return the metrics: name, window, width and group, with the value."""
        found: dict[Key, float] = {}
        durations = self._durations()
        for width in WIDTHS_SECONDS:
            self._counted(width, found)
            self._timed(width, found)
            listed: defaultdict[Key, list[float]] = defaultdict(list)
            for at, event_type, seconds in durations:
                listed[int(at) // width * width, event_type].append(seconds)
            for (start, event_type), values in listed.items():
                values.sort()
                for p in PERCENTILES:
                    rank = math.ceil(p / 100 * len(values))
                    found["notifications.duration", start, width, event_type, p] = values[rank - 1]
        return found

    def _counted(self, width: int, found: dict[Key, float]) -> None:
        counts: Counter[Key] = Counter()
        every: Counter[Key] = Counter()
        wrong: Counter[Key] = Counter()
        for (minute, event_type, publisher, priority), count in self.counts.items():
            start = minute // width * width
            counts[start, event_type, publisher, priority] += count
            every[start, publisher] += count
            if priority in ("ERROR", "CRITICAL"):
                wrong[start, publisher] += count
        busiest: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
        for (start, *group), count in counts.items():
            found["notifications.count", start, width, *group] = count
        for (start, publisher), count in every.items():
            found["notifications.error_share", start, width, publisher] = wrong[start, publisher] / count
            busiest[start].append((-count, publisher))
        for start, listed in busiest.items():
            for rank, (count, publisher) in enumerate(sorted(listed)[:TOP_COUNT], 1):
                found["notifications.busiest", start, width, rank, publisher] = -count

    def _timed(self, width: int, found: dict[Key, float]) -> None:
        sums: defaultdict[Key, float] = defaultdict(float)
        every: Counter[Key] = Counter()
        for (minute, publisher), seconds in self.latencies.items():
            sums[minute // width * width, publisher] += seconds
        for (minute, _, publisher, _), count in self.counts.items():
            every[minute // width * width, publisher] += count
        for (start, publisher), seconds in sums.items():
            found["notifications.latency", start, width, publisher] = seconds / every[start, publisher]
        for minute, seconds in self.slowest.items():
            key = ("notifications.latency.max", minute // width * width, width)
            found[key] = max(seconds, found.get(key, -math.inf))

    def _durations(self) -> list[tuple[float, str, float]]:
        """Pair each end with the latest start before it, in whatever order they were read."""
        found = []
        for event_type, own, at in self.ends:
            before = [start for start in self.starts.get((event_type[:-4], own), ()) if start <= at]
            if before:
                found.append((at, event_type, at - max(before)))
        return found
