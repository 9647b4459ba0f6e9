"""Keeps one cluster for all processes of a test run: ``keep_cluster DIRECTORY NODES RUN``.

``RUN`` is a file that the run holds a lock on. When the lock is free, the run has ended, however it
ended, and so do the brokers.
"""

import fcntl
import sys
from pathlib import Path

from notifier_kafka.testing.clusters import AT_ONCE
from notifier_kafka_drivers.kafka.local.cluster import Cluster


def main() -> None:
    directory, nodes, run = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    cluster = Cluster(directory, nodes, ends_with_parent=True)
    cluster.start()
    print("ready", flush=True)
    with run.open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
    cluster.stop(AT_ONCE)


if __name__ == "__main__":
    main()
