"""Saboteurs: each breaks the product on purpose, in a way that a promise forbids.

Most wrap the publisher or the subscription of a driver.
"""

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from notifier_kafka.driver import Delivery, Limits, Partition, Positions, Receipt, Record
from notifier_kafka.spool import spool_file
from notifier_kafka.spool.spool_file import SpoolFile
from notifier_kafka_drivers.sqlite import membership


class PassThrough:
    """Passes every call on."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class SabotagedDriver(PassThrough):
    """A driver whose publishers and subscriptions are wrapped."""

    def __init__(self, inner: Any, saboteur: type["Saboteur"]) -> None:
        super().__init__(inner)
        self._saboteur = saboteur

    def publisher(self, on_failure: Any, limits: Limits) -> Any:
        return self._saboteur(self.inner.publisher(on_failure, limits))

    def subscribe(self, topics: Sequence[str], group: str | None, start: Any) -> Any:
        return self._saboteur(self.inner.subscribe(topics, group, start))


class Saboteur(PassThrough):
    """Wraps a publisher or a subscription."""


class CommitsBeforeTheWork(Saboteur):
    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        found: Sequence[Delivery] = self.inner.poll(limit, timeout)
        self.inner.commit({delivery.partition: delivery.offset + 1 for delivery in found})
        return found


class NeverCommits(Saboteur):
    def commit(self, positions: Positions) -> None:
        pass


class IgnoresDeliveryErrors(Saboteur):
    def offer(self, record: Record, on_settled: Callable[[Any], None] | None = None) -> None:
        def settle(fate: Any) -> None:
            assert on_settled is not None
            done = isinstance(fate, Receipt)
            on_settled(fate if done else Receipt(Partition(record.topic, 99), id(record)))

        self.inner.offer(record, settle if on_settled else None)


class MisplacesReceipts(Saboteur):
    def offer(self, record: Record, on_settled: Callable[[Any], None] | None = None) -> None:
        def settle(fate: Any) -> None:
            assert on_settled is not None
            on_settled(Receipt(fate.partition, fate.offset - 1) if isinstance(fate, Receipt) else fate)

        self.inner.offer(record, settle if on_settled else None)


class HandsOverBackwards(Saboteur):
    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        return list(reversed(self.inner.poll(limit, timeout)))


class ForgetsWhatWasRefused(Saboteur):
    def offer(self, record: Record, on_settled: Callable[[Any], None] | None = None) -> None:
        if ".requeue." not in record.topic:
            self.inner.offer(record, on_settled)
        elif on_settled is not None:
            on_settled(Receipt(Partition(record.topic, 0), 0))


class RequeuesForEverybody(Saboteur):
    def offer(self, record: Record, on_settled: Callable[[Any], None] | None = None) -> None:
        self.inner.offer(record._replace(topic=record.topic.rpartition(".requeue.")[2]), on_settled)


class ChangesThePayload(Saboteur):
    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        return [self._changed(delivery) for delivery in self.inner.poll(limit, timeout)]

    def _changed(self, delivery: Delivery) -> Delivery:
        value = re.sub(rb'(number\\*": ?)7\b', rb"\g<1>8", delivery.record.value or b"")
        return delivery._replace(record=delivery.record._replace(value=value))


class KeepsTheCallerWaiting(Saboteur):
    def offer(self, record: Record, on_settled: Callable[[Any], None] | None = None) -> None:
        if random.random() < 0.05:
            time.sleep(0.1)
        self.inner.offer(record, on_settled)


class KeepsEverything(Saboteur):
    def offer(self, record: Record, on_settled: Callable[[Any], None] | None = None) -> None:
        vars(self).setdefault("kept", []).append(b"x" * 1_000_000)
        self.inner.offer(record, on_settled)


# Patches of classes, for promises that hold deeper in the product than at the driver.


def drops_the_spools_tail() -> None:
    """Make the spool forward all but the last record of each chunk of its file."""
    read = SpoolFile.read

    def short(self: SpoolFile, limit: int) -> Any:
        chunk = read(self, limit)
        return chunk and chunk._replace(entries=chunk.entries[:-1])

    vars(spool_file)["SpoolFile"].read = short


def skips_the_fence() -> None:
    """Let a member of an SQLite log commit positions of partitions that it does not own any more."""

    def commit(self: Any, connection: Any, positions: Any) -> set[int]:
        rows = json.dumps(list(positions.items()))
        connection.execute(membership.RECORD_ANYWHERE, (self._group_id, rows))
        return set()

    membership.Membership.commit = commit


PATCHES = {"DropsTheSpoolsTail": drops_the_spools_tail, "SkipsTheFence": skips_the_fence}
NAMES = (*PATCHES, *sorted(kind.__name__ for kind in Saboteur.__subclasses__()))


def sabotage(driver: Any, name: str) -> Any:
    """Let the saboteur of this name break the product."""
    if name in PATCHES:
        PATCHES[name]()
        return driver
    return SabotagedDriver(driver, globals()[name])
