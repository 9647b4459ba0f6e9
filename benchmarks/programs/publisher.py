"""Publishes one by one, beside others like it: ``publisher URL TOPIC``."""

import sys

from benchmarks import child_protocol, workload
from benchmarks.environment import connect


def main(url: str, topic: str) -> None:
    notifier = workload.connected_notifier(connect(url, block_timeout=child_protocol.TIMEOUT_SECONDS), topic)
    child_protocol.serve(work=lambda count: workload.one_by_one(notifier, count))


main(*sys.argv[1:])
