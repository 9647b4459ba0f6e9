"""``python -m benchmarks``: this project beside its alternatives, on the same work in the same run."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import measure, peers, rows, sizes
from benchmarks.bare_clients import CLIENTS
from benchmarks.environment import Scene
from benchmarks.rows import Row
from benchmarks.sections import backlog, call_latency, latency, listening, memory, publishing, scaling, sqlite
from benchmarks.spark import section

SECTIONS: dict[str, Callable[[Scene], list[Row]]] = {
    "kafka-publish": publishing.publish,
    "kafka-listen": listening.listen,
    "block": call_latency.block,
    "latency": latency.latency,
    "backlog": backlog.backlog,
    "publish": sqlite.publish,
    "listen": sqlite.listen,
    "memory": memory.memory,
    "growth": scaling.growth,
    "spark": section.spark,
}

WITH_PEERS = {"kafka-publish", "kafka-listen"}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    known = f"all, or of {', '.join(SECTIONS)}; publish and listen are over SQLite; default all"
    add("names", nargs="*", metavar="NAME", help=known)
    add("--quick", action="store_true", help="a first impression, in less than five minutes")
    add("--tiny", action="store_true", help="too little to mean anything: does it run?")
    add("--count", type=int, help="notifications in a round")
    add("--rounds", type=int)
    add("--no-peers", action="store_true", help="without what is installed from the package index")
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--output", type=Path, metavar="FILE", help="write JSON as well")
    add("--page", type=Path, metavar="FILE", help="write a page of plots as well; needs the extra report")
    arguments = parser.parse_args(given)
    if unknown := set(arguments.names) - {"all", *SECTIONS}:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(SECTIONS)}")
    if arguments.names == ["spark"]:
        # Here, because it alone needs PySpark.
        from benchmarks.spark import run

        run.main(
            quick=arguments.quick,
            as_json=arguments.json,
            count=arguments.count,
            rounds=arguments.rounds,
        )
        return
    _report(arguments, *_measure(arguments))


def _measure(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Row]]:
    size = sizes.QUICK if arguments.quick else sizes.TINY if arguments.tiny else sizes.FULL
    size = size._replace(each=arguments.count or size.each, rounds=arguments.rounds or size.rounds)
    size = size._replace(growth_rounds=arguments.rounds or size.growth_rounds)
    wanted = SECTIONS if "all" in (arguments.names or ["all"]) else dict.fromkeys(arguments.names)
    origin, found = _origin(size), []
    beside_peers = not arguments.no_peers and not WITH_PEERS.isdisjoint(wanted)
    if beside_peers:
        # First, so that nobody's time is spoiled by it.
        origin["peers"] = {peer: peers.versions(peer) for peer in peers.REQUIREMENTS}
    with Scene(size, peers=beside_peers, ends_with_parent=arguments.tiny) as scene:
        for name in wanted:
            measure.say(f"{name}, {time.perf_counter() - _BEGAN:.0f} s after the start")
            found += SECTIONS[name](scene)
            scene.clear()
    origin["seconds"] = round(time.perf_counter() - _BEGAN)
    return origin, found


_BEGAN = time.perf_counter()


def _origin(size: sizes.Size) -> dict[str, Any]:
    """Say what was measured where and when: figures without it say nothing."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {memory_bytes / 2**30:.0f} GiB, {platform.machine()}",
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "size": size._asdict(),
        "clients": {each.name: each.version for each in metadata.distributions() if each.name in CLIENTS},
    }


def _report(arguments: argparse.Namespace, origin: dict[str, Any], found: list[Row]) -> None:
    made = json.dumps({**origin, "rows": [rows.plain(row) for row in found]}, indent=2, ensure_ascii=False)
    if arguments.output:
        arguments.output.write_text(f"{made}\n", encoding="utf-8")
    if arguments.page:
        from benchmarks import html_report

        arguments.page.write_text(html_report.make(origin, found), encoding="utf-8")
    if arguments.json:
        sys.stdout.write(f"{made}\n")
        return
    print(*rows.head(origin), rows.table(found), "", rows.summary(found), sep="\n")


if __name__ == "__main__":
    main()
