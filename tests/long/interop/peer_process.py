"""oslo.messaging at work, in its own environment: ``peer_process.py publish|listen INI ...``.

``publish INI PUBLISHER`` sends the samples as the file says. ``listen INI FILE POOL TOPIC...``
appends a line of JSON to a file for each notification, until its standard input ends.
"""

import json
import sys
from typing import IO, Any

import oslo_messaging  # type: ignore[import-not-found,unused-ignore]
from oslo_config import cfg

from tests.long.interop import interop_samples


def publish(transport: Any, publisher: str) -> None:
    notifier = oslo_messaging.Notifier(transport, publisher)
    for sample in interop_samples.samples():
        send = getattr(notifier, sample.priority)
        send({} if sample.context is None else sample.context, sample.event_type, sample.payload)


class Endpoint:
    """Has a method for each priority."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __getattr__(self, priority: str) -> Any:
        if priority not in interop_samples.PRIORITIES:
            raise AttributeError(priority)

        def note(context: Any, publisher: Any, event_type: Any, payload: Any, metadata: Any) -> None:
            line = [priority, context, publisher, event_type, payload, metadata]
            self._file.write(json.dumps(line) + "\n")

        return note


def listen(transport: Any, path: str, pool: str, *topics: str) -> None:
    targets = [oslo_messaging.Target(topic=topic) for topic in topics]
    with open(path, "a", buffering=1) as file:
        listener = oslo_messaging.get_notification_listener(
            transport, targets, [Endpoint(file)], executor="threading", pool=pool
        )
        listener.start()
        sys.stdin.read()
        listener.stop()
        listener.wait()


def main() -> None:
    command, ini, *rest = sys.argv[1:]
    conf = cfg.ConfigOpts()
    conf([], project="peer", default_config_files=[ini])
    transport = oslo_messaging.get_notification_transport(conf)
    if command == "publish":
        publish(transport, *rest)
    else:
        listen(transport, *rest)
    transport.cleanup()


main()
