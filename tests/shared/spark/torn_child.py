"""Writes batch 2 of the job ``me`` to a topic, and is killed when its records are sent and not committed.

``torn_child.py OUTPUT``
"""

import os
import signal
import sys

from notifier_kafka_drivers.kafka import transaction
from spark_sinks.outputs import sink
from tests.shared.spark import rig
from tests.unit.spark_sinks.outputs import test_sinks

if __name__ == "__main__":

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    # Called once every record is confirmed.
    transaction._receipts = die
    one = sink.load(sys.argv[1], rig.conf())
    one.last("me")
    one.write("me", 2, test_sinks.made(("m", 0, test_sinks.GROUP, 9.0)))
