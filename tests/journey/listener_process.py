"""Listens as a member of a pool and writes down each notification that it handled.

``python listener_process.py URL POOL HANDLED_FILE``; SIGTERM ends it.
"""

import os
import signal
import sys
from typing import Any

from oslo_config import cfg

from notifier_kafka import Target, get_notification_listener, get_notification_transport


class Recorder:
    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def info(self, _ctxt: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> None:
        os.write(self._file, f"{payload['id']}\n".encode())


def main(url: str, pool: str, path: str) -> None:
    conf = cfg.ConfigOpts()
    conf([], project="journey", default_config_files=[])
    bus = get_notification_transport(conf, url)
    each = get_notification_listener(bus, [Target(topic="notifications")], [Recorder(path)], pool=pool)
    signal.signal(signal.SIGTERM, lambda *_: each.stop())
    each.start()
    each.wait()
    bus.cleanup()


if __name__ == "__main__":
    main(*sys.argv[1:])
