"""A program ends in the time that it is given, however many publishers wait for brokers that are away."""

import socket
import subprocess
import sys

import pytest

PUBLISHERS = 16
# One after the other, each for as long as its client takes to give up, they took a minute.
LONG = 30.0
PROGRAM = f"""
import sys
from oslo_config import cfg
from notifier_kafka.config import options
from notifier_kafka.publishing import notifier, transport
conf = cfg.ConfigOpts()
conf([], project="test", default_config_files=[], default_config_dirs=[])
options.register(conf)
conf.set_override("exit_timeout", 0.3, group="notifications")
bus = transport.get_notification_transport(conf, f"kafka://{{sys.argv[1]}}/?client={{sys.argv[2]}}")
sender = notifier.Notifier(bus, "host1", driver="messagingv2")
for retry in range({PUBLISHERS}):
    sender.prepare(retry=retry + 10).info({{}}, "e", retry)
"""


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
@pytest.mark.parametrize("listening", [False, True], ids=["absent", "hung"])
def test_ending_takes_no_longer_for_many_publishers(client: str, listening: object) -> None:
    with socket.socket() as broker:
        broker.bind(("127.0.0.1", 0))
        if listening:
            broker.listen(128)
        address = f"127.0.0.1:{broker.getsockname()[1]}"
        command = [sys.executable, "-c", PROGRAM, address, client]
        ended = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True, timeout=LONG)
    assert f"{PUBLISHERS} notifications were not delivered within exit_timeout" in ended.stderr
