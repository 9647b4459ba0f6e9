"""The notifications of the demonstration: one day of a small cloud, the same at every run."""

import datetime
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from notifier_kafka.notification import Notification
from notifier_kafka.publishing import message_ids

# Seconds from midnight.
DAY_SECONDS = 24 * 3600
BUSIEST_SECOND = 13 * 3600
# Two hours in the afternoon in which every operation of one host fails.
OUTAGE_SECONDS = (15 * 3600, 17 * 3600)
FAILING_HOST = "compute.host3"


class Event(NamedTuple):
    """An event to be notified of; ``second`` counts from midnight."""

    second: float
    priority: str
    publisher_id: str
    event_type: str
    payload: dict[str, Any]


class Traffic(NamedTuple):
    """A day of notifications: most are on time, some of these have duplicates, and some come late."""

    on_time: list[Notification]
    duplicates: list[Notification]
    late: list[Notification]


class _Operation(NamedTuple):
    """A kind of work that a service does: its share of the traffic, its hosts and its mean duration."""

    name: str
    service: str
    weight: int
    hosts: int
    mean_seconds: float
    priority: str = "info"
    has_start_and_end: bool = True
    measure: str = ""  # a number in its payload
    max_measure: float = 1.0


_OPERATIONS = (
    _Operation("compute.instance.create", "compute", 20, 6, 25.0),
    _Operation("compute.instance.delete", "compute", 14, 6, 6.0),
    _Operation("compute.instance.resize", "compute", 4, 6, 40.0),
    _Operation("volume.create", "volume", 10, 3, 8.0, measure="gigabytes", max_measure=200.0),
    _Operation("volume.delete", "volume", 7, 3, 4.0),
    _Operation("port.create", "network", 12, 2, 1.5),
    _Operation(
        "image.upload", "image", 3, 2, 60.0, has_start_and_end=False, measure="megabytes", max_measure=4000.0
    ),
    _Operation(
        "identity.authenticate",
        "identity",
        20,
        2,
        0.1,
        "audit",
        has_start_and_end=False,
        measure="tries",
        max_measure=3.0,
    ),
    _Operation(
        "compute.metrics.update",
        "compute",
        10,
        6,
        0.1,
        "sample",
        has_start_and_end=False,
        measure="load",
        max_measure=16.0,
    ),
)


def make_events(count: int) -> list[Event]:
    """Return ``count`` events in the order in which they happen."""
    rng = random.Random(count)  # noqa: S311 - the same day every time is intended
    events: list[Event] = []
    while len(events) < count:
        events.extend(_events_of_operation(rng, len(events)))
    return sorted(events[:count], key=lambda event: event.second)


def make_traffic(count: int, midnight: datetime.datetime) -> Traffic:
    """Make the notifications of the day that begins at ``midnight``, in UTC."""
    notifications = [_notification(event, midnight) for event in make_events(count)]
    # Late ones are from the first half of the day, so that many later ones come before them.
    first_half = notifications[: (len(notifications) + 1) // 2]
    late = first_half[7::250]
    late_ids = {each.message_id for each in late}
    on_time = [each for each in notifications if each.message_id not in late_ids]
    return Traffic(on_time, on_time[5::500], late)


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


def _events_of_operation(rng: random.Random, number: int) -> Iterator[Event]:
    operation = rng.choices(_OPERATIONS, [each.weight for each in _OPERATIONS])[0]
    publisher_id = f"{operation.service}.host{rng.randint(1, operation.hosts)}"
    begin = rng.triangular(0, DAY_SECONDS - 1, BUSIEST_SECOND)
    seconds = min(rng.expovariate(1 / operation.mean_seconds), DAY_SECONDS - 1 - begin)
    request = {"request_id": f"req-{number:08d}", "project_id": f"project-{rng.randint(1, 12):02d}"}
    if not operation.has_start_and_end:
        payload = request | {operation.measure: round(rng.uniform(1, operation.max_measure), 2)}
        yield Event(begin, operation.priority, publisher_id, operation.name, payload)
        return
    yield Event(begin, operation.priority, publisher_id, f"{operation.name}.start", request)
    failed = publisher_id == FAILING_HOST and OUTAGE_SECONDS[0] <= begin < OUTAGE_SECONDS[1]
    outcome: dict[str, Any] = {"fault": "No space left on the host"} if failed else {}
    if operation.measure and not failed:
        outcome[operation.measure] = round(rng.uniform(1, operation.max_measure))
    yield Event(
        begin + seconds,
        "error" if failed else operation.priority,
        publisher_id,
        f"{operation.name}.{'error' if failed else 'end'}",
        request | outcome,
    )
