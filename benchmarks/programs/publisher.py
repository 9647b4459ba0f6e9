"""One of several processes that publish: ``publisher URL TOPIC``."""

import sys

from benchmarks import protocol, work
from benchmarks.scene import connect


def main(url: str, topic: str) -> None:
    through = work.sender(connect(url, block_timeout=protocol.PATIENCE), topic)
    protocol.serve(work=lambda count: work.one_by_one(through, count))


main(*sys.argv[1:])
