"""A day of a small cloud, always the same: what the demonstration publishes."""

import datetime
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from notifier_kafka.notification import Notification
from notifier_kafka.publishing import message_ids

DAY = 24 * 3600
NOON = 13 * 3600
# Two hours in the afternoon in which one host fails at what it is asked for.
OUTAGE = (15 * 3600, 17 * 3600)
FAILING_HOST = "compute.host3"


class Event(NamedTuple):
    """One notification to be; ``second`` counts from midnight."""

    second: float
    priority: str
    publisher_id: str
    event_type: str
    payload: dict[str, Any]


class Script(NamedTuple):
    """What is published of a day: most as it happens, some of that twice, and some when it is over."""

    first: list[Notification]
    again: list[Notification]
    late: list[Notification]


class _Operation(NamedTuple):
    """Something a service does: how often, by how many hosts, and for how long."""

    name: str
    service: str
    weight: int
    hosts: int
    seconds: float
    priority: str = "info"
    paired: bool = True
    measure: str = ""
    most: float = 1.0


_OPERATIONS = (
    _Operation("compute.instance.create", "compute", 20, 6, 25.0),
    _Operation("compute.instance.delete", "compute", 14, 6, 6.0),
    _Operation("compute.instance.resize", "compute", 4, 6, 40.0),
    _Operation("volume.create", "volume", 10, 3, 8.0, measure="gigabytes", most=200.0),
    _Operation("volume.delete", "volume", 7, 3, 4.0),
    _Operation("port.create", "network", 12, 2, 1.5),
    _Operation("image.upload", "image", 3, 2, 60.0, paired=False, measure="megabytes", most=4000.0),
    _Operation(
        "identity.authenticate", "identity", 20, 2, 0.1, "audit", paired=False, measure="tries", most=3.0
    ),
    _Operation(
        "compute.metrics.update", "compute", 10, 6, 0.1, "sample", paired=False, measure="load", most=16.0
    ),
)


def events(count: int) -> list[Event]:
    """Return ``count`` events in the order in which they happen."""
    rng = random.Random(count)  # noqa: S311 - the same day again is the point
    found: list[Event] = []
    while len(found) < count:
        found.extend(_happen(rng, len(found)))
    return sorted(found[:count], key=lambda event: event.second)


def script(count: int, midnight: datetime.datetime) -> Script:
    """Make notifications of the day that begins at a midnight in UTC."""
    made = [_notification(event, midnight) for event in events(count)]
    # Of the first half of a day: when they come, the day has gone on.
    late = [each for place, each in enumerate(made) if place % 250 == 7 and place < len(made) / 2]
    known = {each.message_id for each in late}
    first = [each for each in made if each.message_id not in known]
    return Script(first, first[5::500], late)


def _notification(event: Event, midnight: datetime.datetime) -> Notification:
    at = midnight + datetime.timedelta(seconds=event.second)
    return Notification(
        message_ids.new_message_id(),
        event.publisher_id,
        event.event_type,
        event.priority.upper(),
        event.payload,
        at.strftime("%Y-%m-%d %H:%M:%S.%f"),
        {},
    )


def _happen(rng: random.Random, number: int) -> Iterator[Event]:
    operation = rng.choices(_OPERATIONS, [each.weight for each in _OPERATIONS])[0]
    publisher_id = f"{operation.service}.host{rng.randint(1, operation.hosts)}"
    begin = rng.triangular(0, DAY - 1, NOON)
    seconds = min(rng.expovariate(1 / operation.seconds), DAY - 1 - begin)
    request = {"request_id": f"req-{number:08d}", "project_id": f"project-{rng.randint(1, 12):02d}"}
    if not operation.paired:
        payload = request | {operation.measure: round(rng.uniform(1, operation.most), 2)}
        yield Event(begin, operation.priority, publisher_id, operation.name, payload)
        return
    yield Event(begin, operation.priority, publisher_id, f"{operation.name}.start", request)
    failed = publisher_id == FAILING_HOST and OUTAGE[0] <= begin < OUTAGE[1]
    outcome: dict[str, Any] = {"fault": "No space left on the host"} if failed else {}
    if operation.measure and not failed:
        outcome[operation.measure] = round(rng.uniform(1, operation.most))
    yield Event(
        begin + seconds,
        "error" if failed else operation.priority,
        publisher_id,
        f"{operation.name}.{'error' if failed else 'end'}",
        request | outcome,
    )
