"""Handles a thousand notifications a second: ``slow_listener URL TOPIC``."""

import sys
import time
import uuid
from typing import Any

from benchmarks import child_protocol
from benchmarks.environment import connect
from notifier_kafka import Target, get_notification_listener


class SlowEndpoint:
    """An endpoint that takes a millisecond for each."""

    handled = 0

    def info(self, *_message: Any) -> None:
        time.sleep(0.001)
        self.handled += 1


def main(url: str, topic: str) -> None:
    endpoint = SlowEndpoint()
    where = [Target(topic=topic)]
    get_notification_listener(connect(url), where, [endpoint], pool=str(uuid.uuid4())).start()

    def wait(count: int) -> int:
        deadline = time.monotonic() + child_protocol.TIMEOUT_SECONDS
        while endpoint.handled < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return endpoint.handled

    child_protocol.serve(wait=wait)


main(*sys.argv[1:])
