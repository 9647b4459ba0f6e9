"""Publishes at a fixed rate and measures its memory: ``memory_probe URL OUTBOX_BYTES SPOOL``."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks import child_protocol
from benchmarks.environment import connect
from notifier_kafka import Notifier

CALLS_PER_SECOND = 5_000
BURST_SECONDS = 0.02  # a sleep after each call would cost more than the call
SAMPLE_SECONDS = 0.1


def main(url: str, outbox_bytes: str, spool: str) -> None:
    # Only the bytes limit the outbox, not the number of records.
    bounds: dict[str, Any] = {"outbox_bytes": int(outbox_bytes), "outbox_records": 10**9}
    bus = connect(url, **bounds, **({"spool_dir": spool} if spool else {}))
    sender = Notifier(bus, child_protocol.PUBLISHER_ID, driver="messagingv2", key="none")

    def prepare(count: int) -> None:
        for _ in range(count):
            sender.info({}, child_protocol.EVENT_TYPE, child_protocol.PAYLOAD)
        if left := sender.flush(child_protocol.TIMEOUT_SECONDS):
            raise RuntimeError(f"the broker did not take {left}")

    def work(milliseconds: int) -> dict[str, Any]:
        samples, stop = [_resident()], threading.Event()

        def watch() -> None:
            while not stop.wait(SAMPLE_SECONDS):
                samples.append(_resident())

        watcher = threading.Thread(target=watch)
        watcher.start()
        offered = _publish(sender.info, milliseconds / 1000)
        stop.set()
        watcher.join()
        samples.append(_resident())
        half = (len(samples) + 1) // 2
        peaks = {"before": samples[0], "first": max(samples[:half]), "second": max(samples[half:])}
        return peaks | {"offered": offered, "lost": sum(sender.stats().lost.values())}

    child_protocol.serve(prepare=prepare, work=work)


def _publish(info: Any, seconds: float) -> int:
    offered, begin = 0, time.perf_counter()
    while (now := time.perf_counter() - begin) < seconds:
        while offered < now * CALLS_PER_SECOND:
            info({}, child_protocol.EVENT_TYPE, child_protocol.PAYLOAD)
            offered += 1
        time.sleep(BURST_SECONDS)
    return offered


def _resident() -> int:
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in each)
    return int(line.split()[1]) * 1024


main(*sys.argv[1:])
