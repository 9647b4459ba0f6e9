"""The counts of the demonstration, and whether they agree."""

import collections
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from notifier_kafka.cli.demo import traffic
from notifier_kafka.cli.demo.sandbox import Sandbox


class Outcome(NamedTuple):
    """The counts of publisher, listeners and Spark: notifications by event type, the others by records."""

    published: collections.Counter[str]
    handled: collections.Counter[str]
    aggregated: collections.Counter[str]
    expected: dict[str, int]
    listened: dict[str, int]
    spark: dict[str, Any]
    lost: int

    @classmethod
    def of(
        cls,
        sandbox: Sandbox,
        day: traffic.Traffic,
        spark: dict[str, Any],
        aggregated: collections.Counter[str],
    ) -> "Outcome":
        """Collect the counts."""
        return cls(
            sandbox.published,
            sandbox.handled,
            aggregated,
            {
                "duplicate": sandbox.duplicates_published,
                "malformed": sandbox.malformed_published,
                "late": len(day.late),
            },
            {"duplicate": sandbox.redelivered, "malformed": sandbox.malformed_received},
            spark,
            sandbox.lost,
        )

    def counts_agree(self) -> bool:
        """Tell whether nothing is missing, and nothing is counted twice."""
        listened = self.published == self.handled and not self.lost
        # At-least-once delivery: any notification may be redelivered.
        listened &= self.listened["duplicate"] >= self.expected["duplicate"]
        listened &= self.listened["malformed"] == self.expected["malformed"]
        if not self.spark:
            return listened
        counted = self.aggregated == self.published and self.spark["total"] == self.published.total()
        return listened and counted and all(self.spark[name] == n for name, n in self.expected.items())

    def lines(self) -> Iterator[str]:
        """Compare the counts, a line for each kind."""
        counts = [("published", self.published.total()), ("handled", self.handled.total())]
        if self.spark:
            counts.append(("aggregated", self.aggregated.total()))
        yield f"{_compare('notifications', counts)}; {self.lost:,} lost"
        for kind, by_listeners, by_spark in (
            ("duplicate", "redelivered", "ignored by Spark"),
            ("malformed", "set aside", "skipped by Spark"),
            ("late", "", "counted by Spark"),
        ):
            counts = [("published", self.expected[kind])]
            if by_listeners:
                counts.append((by_listeners, self.listened[kind]))
            if self.spark:
                counts.append((by_spark, self.spark[kind]))
            yield _compare(kind, counts)


def _compare(kind: str, counts: Sequence[tuple[str, int]]) -> str:
    (name, first), *others = counts
    line = f"{kind}: {first:,} {name}"
    for name, count in others:
        line += f" {'=' if count == first else 'but'} {count:,} {name}"
    return line
