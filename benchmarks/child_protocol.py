"""The protocol of child processes, one line in and one line of JSON out, and the data of the workload.

Imports the standard library only, and orjson where it is installed: peers run it in their own
environments.
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
BATCH_RECORDS = 1_000
TIMEOUT_SECONDS = 300.0  # without progress; then a measurement is invalid
# The defaults of the driver, for all that is compared with it.
LINGER_MS = 5
BATCH_BYTES = 256 * 1024
PUBLISHER_ID = "compute.host1"
EVENT_TYPE = "compute.instance.create.end"
PAYLOAD = {"instance_id": "5f643cfc-664b-4c69-8000-ce2ed7b08216", "state": "active", "text": "x" * 125}
"""200 bytes."""

Message = tuple[bytes, list[tuple[str, bytes]]]
"""A value and its headers."""


def serve(**commands: Callable[[int], Any]) -> None:
    """Run the command of each line until the input ends."""
    logging.disable(logging.WARNING)  # failures are counted
    commands["cpu"] = lambda _count: time.process_time()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, count = line.split()
        print(json.dumps(commands[name](int(count))), flush=True)


def encode(payload: Any = PAYLOAD) -> Message:
    """Build what the channel builds, by hand; ids and times are from the standard library."""
    message_id = str(uuid.uuid4())
    inner = {
        "message_id": message_id,
        "publisher_id": PUBLISHER_ID,
        "event_type": EVENT_TYPE,
        "priority": "INFO",
        "payload": payload,
        "timestamp": str(datetime.now(UTC).replace(tzinfo=None)),
        "_context": {},
    }
    value = dumps({"oslo.version": "2.0", "oslo.message": dumps(inner).decode()})
    headers = [
        ("content-type", b"application/json"),
        ("message-id", message_id.encode()),
        ("event-type", EVENT_TYPE.encode()),
        ("publisher-id", PUBLISHER_ID.encode()),
        ("priority", b"INFO"),
    ]
    return value, headers


def decode(value: bytes) -> Any:
    """Decode an envelope by hand."""
    return loads(loads(value)["oslo.message"])
