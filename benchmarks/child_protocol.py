"""How a child is told what to do: one line in, one line of JSON out; and what all of them work on.

Imports nothing but the standard library and orjson where it is: peers run it in their environments.
"""

import json
import logging
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

dumps: Callable[[Any], bytes]
loads: Callable[[Any], Any]
try:
    from orjson import dumps, loads
except ModuleNotFoundError:
    loads = json.loads
    dumps = lambda value: json.dumps(value, separators=(",", ":")).encode()  # noqa: E731

PARTITIONS = 4
BATCH = 1_000
PATIENCE = 300.0  # seconds that nothing may move before a measurement is void
# The driver's defaults: who is compared with it batches alike.
LINGER_MS = 5
BATCH_BYTES = 256 * 1024
PUBLISHER = "compute.host1"
EVENT = "compute.instance.create.end"
PAYLOAD = {"instance_id": "5f643cfc-664b-4c69-8000-ce2ed7b08216", "state": "active", "text": "x" * 125}
"""200 bytes."""

Message = tuple[bytes, list[tuple[str, bytes]]]
"""A value and its headers."""


def serve(**commands: Callable[[int], Any]) -> None:
    """Do what each line asks for, until there are no more."""
    logging.disable(logging.WARNING)  # failures are found by counting
    commands["cpu"] = lambda _count: time.process_time()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, count = line.split()
        print(json.dumps(commands[name](int(count))), flush=True)


def message(payload: Any = PAYLOAD) -> Message:
    """Build by hand what the channel builds; ids and times are the standard library's."""
    message_id = str(uuid.uuid4())
    inner = {
        "message_id": message_id,
        "publisher_id": PUBLISHER,
        "event_type": EVENT,
        "priority": "INFO",
        "payload": payload,
        "timestamp": str(datetime.now(UTC).replace(tzinfo=None)),
        "_context": {},
    }
    value = dumps({"oslo.version": "2.0", "oslo.message": dumps(inner).decode()})
    headers = [
        ("content-type", b"application/json"),
        ("message-id", message_id.encode()),
        ("event-type", EVENT.encode()),
        ("publisher-id", PUBLISHER.encode()),
        ("priority", b"INFO"),
    ]
    return value, headers


def opened(value: bytes) -> Any:
    """Decode an envelope by hand."""
    return loads(loads(value)["oslo.message"])
