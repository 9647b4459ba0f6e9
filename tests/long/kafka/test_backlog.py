"""A listener that is far behind: what waits lies in the log, not in its memory."""

import re
import subprocess
import sys
from typing import Any

from notifier_kafka.contract.driver import Record
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec
from tests.shared.kafka.kafka_rig import PATIENCE, Connect, publish

SCRIPT = """
import pathlib, sys, threading, time
from oslo_config import cfg
from notifier_kafka import target
from notifier_kafka.listening import listener
from notifier_kafka.publishing import transport
url, topic = sys.argv[1:]

class Slow:
    handled = 0
    def info(self, *message):
        time.sleep(0.001)
        self.handled += 1

def megabytes(what):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition(what + ":")[2].split()[0]) / 1024

conf = cfg.ConfigOpts()
conf([], default_config_files=[], default_config_dirs=[])
endpoint = Slow()
bus = transport.get_notification_transport(conf, url)
began = megabytes("VmRSS")
with listener.get_notification_listener(bus, [target.Target(topic=topic)], [endpoint], pool="slow"):
    while endpoint.handled < 3_000:
        time.sleep(0.01)
    print(f"{megabytes('VmHWM') - began:.0f} MiB, {endpoint.handled} handled", flush=True)
bus.cleanup()
"""
WAITING, SIZE = 100_000, 2_000  # 200 MB
# docs/listening.md: what the client fetches ahead, 64 MiB or 50; what else a listener needs is not much.
MOST = 128


def test_memory_is_bounded_however_many_wait(
    kafka_cluster: Any, connect: Connect, client: str, topic: str
) -> None:
    driver = connect()
    sent = Notification("m", "p", "e", "INFO", "x" * SIZE, "2026-01-01 00:00:00", {})
    value, headers = codec.encode(sent, "flat", None)
    driver.admin().create_topic(f"{topic}.info", 4)
    for _ in range(10):
        publish(driver, *[Record(f"{topic}.info", value, None, headers)] * (WAITING // 10))
    command = [sys.executable, "-c", SCRIPT, f"{kafka_cluster.url}/?client={client}", topic]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert ran.returncode == 0, ran.stderr
    said = re.fullmatch(r"(\d+) MiB, (\d+) handled\n", ran.stdout)
    assert said, ran.stdout + ran.stderr
    assert int(said[1]) < MOST
    # Most of it waits still.
    assert int(said[2]) < WAITING // 10
