"""What the tests of the Kafka driver do again and again."""

import contextlib
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator

from notifier_kafka.contract.driver import Delivery, Limits, Record, Subscription
from notifier_kafka.errors import MessagingException, TransportUnavailable
from notifier_kafka_drivers.kafka.driver import KafkaDriver
from notifier_kafka_drivers.kafka.local.cluster import Cluster

PATIENCE = 60.0
Connect = Callable[..., KafkaDriver]


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait for what has to come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}{_stacks()}"
        time.sleep(0.02)


def _stacks() -> str:
    """Say where each thread is: what hangs once in a hundred runs is known by nothing else."""
    frames = sys._current_frames().items()
    return "".join(f"\nthread {ident}:\n{''.join(traceback.format_stack(at)[-6:])}" for ident, at in frames)


@contextlib.contextmanager
def hung(cluster: Cluster) -> Iterator[None]:
    """Stop the broker of a cluster that has one, and let it go on afterwards."""
    cluster.kill_node(1, signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.kill_node(1, signal.SIGCONT)


def publish(driver: KafkaDriver, *records: Record) -> None:
    """Publish and see it through."""
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    for record in records:
        publisher.offer(record)
    assert publisher.flush(PATIENCE) == 0
    publisher.close()
    assert failures == []


def gather(member: Subscription, count: int, seconds: float = PATIENCE) -> list[Delivery]:
    """Poll until ``count`` deliveries are there."""
    found: list[Delivery] = []

    def enough() -> bool:
        try:
            found.extend(member.poll(count - len(found), 0.2))
        except TransportUnavailable:
            return False
        return len(found) >= count

    until(enough, f"{count} deliveries", seconds)
    return found
