"""One of several processes that publish: ``publisher URL TOPIC``."""

import sys

from benchmarks import child_protocol, workload
from benchmarks.environment import connect


def main(url: str, topic: str) -> None:
    through = workload.sender(connect(url, block_timeout=child_protocol.PATIENCE), topic)
    child_protocol.serve(work=lambda count: workload.one_by_one(through, count))


main(*sys.argv[1:])
