"""Publishes numbered notifications and writes down each that was acknowledged.

``python publisher_process.py URL NAME COUNT ACKNOWLEDGED_FILE``
"""

import os
import sys

from oslo_config import cfg

from notifier_kafka import Notifier, get_notification_transport

CHUNK = 20


def main(url: str, name: str, count: int, path: str) -> None:
    conf = cfg.ConfigOpts()
    conf([], project="journey", default_config_files=[])
    bus = get_notification_transport(conf, url)
    # Many keys, so that every partition, and so every listener, gets its share.
    sender = Notifier(bus, name, driver="messagingv2", key="payload:key").prepare(wait=True)
    acknowledged = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for begin in range(0, count, CHUNK):
        ids = [f"{name}-{number:06d}" for number in range(begin, min(begin + CHUNK, count))]
        sender.send_many({}, "info", [("journey.step", {"id": one, "key": one[-2:]}) for one in ids])
        os.write(acknowledged, "".join(f"{one}\n" for one in ids).encode())
    bus.cleanup()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
