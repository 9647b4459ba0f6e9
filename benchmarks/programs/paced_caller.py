"""Calls a notifier at a fixed pace, and times each call: ``paced_caller URL SPOOL CHANNEL``.

The objects of imported modules are hidden from the garbage collector: a full collection stops all
threads for about 30 ms for them alone.
"""

import gc
import sys
import time
from typing import Any

from benchmarks import child_protocol
from benchmarks.environment import connect
from notifier_kafka import Notifier

CALLS_PER_SECOND = 3_000
LATE_SECONDS = 0.05
WARM_UP_CALLS = 500
CALLS_PER_CHECK = 300
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def main(url: str, spool: str, channel: str) -> None:
    sender = Notifier(connect(url, spool_dir=spool), "compute.host1", driver=channel)
    gc.collect()
    gc.freeze()

    def prepare(_count: int) -> None:
        for _ in range(WARM_UP_CALLS):
            sender.info({}, "warm.up", child_protocol.PAYLOAD)
        if left := sender.flush(child_protocol.TIMEOUT_SECONDS):
            raise RuntimeError(f"the broker did not take {left}")

    def work(count: int) -> dict[str, Any]:
        took = sorted(_call(sender.info, count))
        found: dict[str, Any] = {name: took[int(count * share)] * 1e6 for name, share in SHARES.items()}
        return found | {
            "most": took[-1] * 1e6,
            "late": sum(each > LATE_SECONDS for each in took),
            "lost": sum(sender.stats().lost.values()),
        }

    def divert(_count: int) -> float:
        """Call until notifications go to the spool; return the longest call."""
        took = [0.0]
        end = time.monotonic() + child_protocol.TIMEOUT_SECONDS
        while not sender.stats().spooled:
            if time.monotonic() > end:
                raise RuntimeError("nothing goes to the spool")
            took += _call(sender.info, CALLS_PER_CHECK)
        return max(took) * 1e6

    child_protocol.serve(prepare=prepare, divert=divert, work=work)


def _call(info: Any, count: int) -> list[float]:
    took = [0.0] * count
    clock, sleep = time.perf_counter, time.sleep
    begin = clock()
    for number in range(count):
        if (early := begin + number / CALLS_PER_SECOND - clock()) > 0:
            sleep(early)
        start = clock()
        info({}, child_protocol.EVENT_TYPE, child_protocol.PAYLOAD)
        took[number] = clock() - start
    return took


main(*sys.argv[1:])
