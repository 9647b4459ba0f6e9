"""How long one publish call takes, as its caller sees it, while the broker is well, hangs or is gone.

For each client library and state a process of its own publishes at a fixed pace, with a
spool, over a real local broker; what its memory grows by is measured too. The first row
sends nothing anywhere: what it shows beyond some microseconds is the machine's.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from oslo_config import cfg

from benchmarks.bare_kafka import CLIENTS, Void
from benchmarks.embedded import PAYLOAD
from notifier_kafka import notifier, options, transport
from notifier_kafka_drivers.kafka.cluster import Cluster

PACE = 3_000  # calls a second
LATE = 0.05
WARM = 500
SHARES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
SIGNALS = {"healthy": None, "hung": signal.SIGSTOP, "gone": signal.SIGKILL}


class Blocking(NamedTuple):
    """Microseconds of a call; calls above 50 ms; megabytes that memory grew by; notifications lost."""

    name: str
    p50: float
    p99: float
    p999: float
    most: float
    late: int
    grown: float
    lost: int


def block(count: int, _rounds: int) -> dict[str, list[Blocking]]:
    """Make ``count`` calls in each state with each client library."""
    with tempfile.TemporaryDirectory() as directory:
        rows = [_measure("nothing sent", ("sqlite://", directory, "noop"), count)]
    for client in CLIENTS:
        for state, number in SIGNALS.items():
            with tempfile.TemporaryDirectory(prefix="notifier-kafka-benchmarks-") as directory:
                cluster = Cluster(Path(directory, "kafka"), leashed=False)
                cluster.start()
                try:
                    url, spool = f"{cluster.url}/?client={client}", str(Path(directory, "spool"))
                    harm = partial(_harm, cluster, number)
                    rows.append(_measure(f"{client}, {state}", (url, spool, "messagingv2"), count, harm))
                finally:
                    cluster.kill_node(1, signal.SIGCONT)
                    cluster.stop()
    return {"one publish call": rows}


def table(title: str, rows: Sequence[Blocking]) -> str:
    """Draw results as text."""
    heads = ("p50 µs", "p99 µs", "p99.9 µs", "max µs", "> 50 ms", "MB grown", "lost")
    lines = [title, f"  {'':28}" + "".join(f"{head:>10}" for head in heads)]
    lines += [f"  {row[0]:28}" + "".join(f"{value:10,.0f}" for value in row[1:]) for row in rows]
    return "\n".join(lines)


def _harm(cluster: Cluster, number: int | None) -> None:
    if number is not None:
        cluster.kill_node(1, number)


def _measure(
    name: str, where: Sequence[str], count: int, harm: Callable[[], None] = lambda: None
) -> Blocking:
    """Let a process publish, once ``harm`` is done."""
    print(f"  {name}", file=sys.stderr)
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.block", *where, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        harm()
        child.stdin.write("go\n")
        child.stdin.flush()
        line = child.stdout.readline()
        child.kill()
    if not line:
        raise Void(f"{name}: the publisher died")
    return Blocking(name, **json.loads(line))


def _publish(url: str, spool: str, channel: str, count: int) -> dict[str, Any]:
    conf = cfg.ConfigOpts()
    conf([], project="benchmarks", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    conf.set_override("spool_dir", spool, group=options.NOTIFICATIONS)
    bus = transport.get_notification_transport(conf, url)
    sender = notifier.Notifier(bus, "compute.host1", driver=channel)
    for _ in range(WARM):
        sender.info({}, "warm.up", PAYLOAD)
    if sender.flush(60.0):
        raise Void("the broker does not answer")
    print("ready", flush=True)
    sys.stdin.readline()
    before = _resident()
    took = _call(sender.info, count)
    took.sort()
    grown = _resident() - before
    return {
        **{name: took[int(count * share)] * 1e6 for name, share in SHARES.items()},
        "most": took[-1] * 1e6,
        "late": sum(each > LATE for each in took),
        "grown": grown / 2**20,
        "lost": sum(sender.stats().lost.values()),
    }


def _call(info: Any, count: int) -> list[float]:
    took = [0.0] * count
    clock, sleep = time.perf_counter, time.sleep
    begin = clock()
    for number in range(count):
        if (early := begin + number / PACE - clock()) > 0:
            sleep(early)
        start = clock()
        info({}, "compute.instance.create.end", PAYLOAD)
        took[number] = clock() - start
    return took


def _resident() -> int:
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in each)
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(_publish(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))), flush=True)
    sys.stdin.readline()
