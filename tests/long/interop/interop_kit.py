"""What the tests of this directory share on our side of the bus."""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from oslo_config import cfg

from notifier_kafka.contract.driver import Delivery
from notifier_kafka.listening.listener import get_notification_listener
from notifier_kafka.publishing.transport import NotificationTransport, get_notification_transport
from notifier_kafka.target import Target
from tests.long.interop.interop_samples import Sample

CLIENTS = ("confluent-kafka", "kafka-python")
PATIENCE = 60.0


class Got(NamedTuple):
    """One call of an endpoint."""

    priority: str
    context: Any
    publisher_id: Any
    event_type: Any
    payload: Any
    metadata: Any


class Endpoint:
    """Notes every call; has a method for each priority."""

    def __init__(self) -> None:
        self.got: list[Got] = []

    def __getattr__(self, priority: str) -> Callable[..., None]:
        if priority not in ("audit", "debug", "info", "warn", "error", "critical", "sample"):
            raise AttributeError(priority)
        return lambda *fields: self.got.append(Got(priority, *fields))

    def await_count(self, count: int) -> list[Got]:
        until(lambda: len(self.got) >= count, f"{count} notifications")
        return self.got


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


@contextlib.contextmanager
def connected(
    url: str | None = None, ini: Path | None = None, **notifications: Any
) -> Iterator[NotificationTransport]:
    """Make a transport for a URL or a file, with values for [notifications]."""
    conf = cfg.ConfigOpts()
    conf([], project="interop", default_config_files=[str(ini)] if ini else [], default_config_dirs=[])
    made = get_notification_transport(conf, url)
    for name, value in notifications.items():
        conf.set_override(name, value, group="notifications")
    try:
        yield made
    finally:
        made.cleanup()


@contextlib.contextmanager
def listening(transport: NotificationTransport, *topics: str, pool: str | None = None) -> Iterator[Endpoint]:
    endpoint = Endpoint()
    targets = [Target(topic=topic) for topic in topics]
    with get_notification_listener(transport, targets, [endpoint], pool=pool):
        yield endpoint


def contents(transport: NotificationTransport, *topics: str) -> list[Delivery]:
    """Read whole topics without a group."""
    driver = transport.driver
    return [delivery for span in driver.spans(topics) for delivery in driver.read(span)]


def opened(value: bytes | None) -> dict[str, Any]:
    """Open an envelope by hand: what is compared must not come from the codec under test."""
    assert value is not None
    envelope = json.loads(value)
    assert envelope.keys() == {"oslo.version", "oslo.message"}
    assert envelope["oslo.version"] == "2.0"
    found = json.loads(envelope["oslo.message"])
    assert isinstance(found, dict)
    return found


def exact(value: Any) -> str:
    """Spell a JSON value so that 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def compare(got: Got, sent: Sample, on_the_bus: dict[str, Any], publisher_id: str) -> None:
    """Compare what an endpoint was given with what was sent and with what is on the bus, field by field."""
    priority = "warn" if sent.priority == "warning" else sent.priority
    assert got.priority == priority
    assert on_the_bus["priority"] == priority.upper()
    assert got.publisher_id == on_the_bus["publisher_id"] == publisher_id
    assert got.event_type == on_the_bus["event_type"] == sent.event_type
    assert exact(got.payload) == exact(on_the_bus["payload"]) == exact(sent.payload_there)
    assert exact(got.context) == exact(on_the_bus["_context"]) == exact(sent.context_there)
    bus_metadata = {name: on_the_bus[name] for name in ("message_id", "timestamp")}
    assert got.metadata == bus_metadata


def compare_all(
    got: Sequence[Got],
    sent: Sequence[Sample],
    on_the_bus: Sequence[dict[str, Any]],
    publisher_id: str,
    copies: int,
) -> None:
    """Compare everything, and that of each there are so many copies, on the bus and as handed over.

    The copies for the topics and channels of one call have one message id.
    """
    by_id = {found["message_id"]: found for found in on_the_bus}
    by_type = {sample.event_type: sample for sample in sent}
    assert sorted(found["event_type"] for found in by_id.values()) == sorted(by_type)
    assert all(by_id[found["message_id"]] == found for found in on_the_bus)
    wanted = dict.fromkeys(by_id, copies)
    assert Counter(found["message_id"] for found in on_the_bus) == wanted
    assert Counter(each.metadata["message_id"] for each in got) == wanted
    for each in got:
        compare(each, by_type[each.event_type], by_id[each.metadata["message_id"]], publisher_id)
