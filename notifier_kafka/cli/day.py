"""A day of a small cloud, always the same: what the demonstration publishes."""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

DATE = "2026-01-15"
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


class _Operation(NamedTuple):
    """Something a service does: how often, by how many hosts, and for how long."""

    name: str
    service: str
    weight: int
    hosts: int
    seconds: float
    priority: str = "info"
    paired: bool = True


_OPERATIONS = (
    _Operation("compute.instance.create", "compute", 20, 6, 25.0),
    _Operation("compute.instance.delete", "compute", 14, 6, 6.0),
    _Operation("compute.instance.resize", "compute", 4, 6, 40.0),
    _Operation("volume.create", "volume", 10, 3, 8.0),
    _Operation("volume.delete", "volume", 7, 3, 4.0),
    _Operation("port.create", "network", 12, 2, 1.5),
    _Operation("image.upload", "image", 3, 2, 60.0, paired=False),
    _Operation("identity.authenticate", "identity", 20, 2, 0.1, "audit", paired=False),
    _Operation("compute.metrics.update", "compute", 10, 6, 0.1, "sample", paired=False),
)


def events(count: int) -> list[Event]:
    """Return ``count`` events in the order in which they happen."""
    rng = random.Random(count)  # noqa: S311 - the same day again is the point
    found: list[Event] = []
    while len(found) < count:
        found.extend(_happen(rng, len(found)))
    return sorted(found[:count], key=lambda event: event.second)


def _happen(rng: random.Random, number: int) -> Iterator[Event]:
    operation = rng.choices(_OPERATIONS, [each.weight for each in _OPERATIONS])[0]
    publisher_id = f"{operation.service}.host{rng.randint(1, operation.hosts)}"
    begin = rng.triangular(0, DAY - 1, NOON)
    seconds = min(rng.expovariate(1 / operation.seconds), DAY - 1 - begin)
    request = {"request_id": f"req-{number:08d}", "project_id": f"project-{rng.randint(1, 12):02d}"}
    if not operation.paired:
        payload = request | {"at": _at(begin), "value": round(rng.random(), 4)}
        yield Event(begin, operation.priority, publisher_id, operation.name, payload)
        return
    yield Event(
        begin, operation.priority, publisher_id, f"{operation.name}.start", request | {"at": _at(begin)}
    )
    failed = publisher_id == FAILING_HOST and OUTAGE[0] <= begin < OUTAGE[1]
    outcome = {"at": _at(begin + seconds), "seconds": round(seconds, 3)}
    if failed:
        outcome["fault"] = "No space left on the host"
    yield Event(
        begin + seconds,
        "error" if failed else operation.priority,
        publisher_id,
        f"{operation.name}.{'error' if failed else 'end'}",
        request | outcome,
    )


def _at(second: float) -> str:
    minutes, rest = divmod(second, 60)
    hours, minutes = divmod(int(minutes), 60)
    # Cut, not rounded: 59.9996 must not become 60.000.
    return f"{DATE}T{hours:02d}:{minutes:02d}:{int(rest * 1000) / 1000:06.3f}Z"
