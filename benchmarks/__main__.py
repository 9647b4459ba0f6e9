"""``python -m benchmarks``: compare this project with its alternatives, on the same work in the same run."""

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
from benchmarks.environment import Environment
from benchmarks.rows import Row
from benchmarks.sections import backlog, call_latency, latency, listening, memory, publishing, scaling, sqlite
from benchmarks.spark import section

SECTIONS: dict[str, Callable[[Environment], list[Row]]] = {
    "kafka-publish": publishing.publish,
    "kafka-listen": listening.listen,
    "call-latency": call_latency.measure_calls,
    "latency": latency.latency,
    "backlog": backlog.backlog,
    "sqlite-publish": sqlite.publish,
    "sqlite-listen": sqlite.listen,
    "memory": memory.memory,
    "scaling": scaling.measure_scaling,
    "spark": section.spark,
}

WITH_PEERS = {"kafka-publish", "kafka-listen"}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    known = f"all, or some of {', '.join(SECTIONS)}; default: all"
    add("names", nargs="*", metavar="NAME", help=known)
    add("--quick", action="store_true", help="a first impression in less than five minutes")
    add("--tiny", action="store_true", help="test the benchmarks; such figures mean nothing")
    add("--count", type=int, help="notifications in a round")
    add("--rounds", type=int, help="rounds of each section")
    add(
        "--no-peers",
        action="store_true",
        help="without other libraries, which are installed from the package index",
    )
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--output", type=Path, metavar="FILE", help="also write JSON to a file")
    add("--page", type=Path, metavar="FILE", help="also write a page of plots; needs the extra report")
    arguments = parser.parse_args(given)
    if unknown := set(arguments.names) - {"all", *SECTIONS}:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(SECTIONS)}")
    if arguments.names == ["spark"]:
        # Imported here: only this section needs PySpark.
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
        # Before all measurements, so that the installation disturbs none.
        origin["peers"] = {peer: peers.versions(peer) for peer in peers.REQUIREMENTS}
    with Environment(size, peers=beside_peers, ends_with_parent=arguments.tiny) as environment:
        for name in wanted:
            measure.report_progress(f"{name}, {time.perf_counter() - _BEGAN:.0f} s after the start")
            found += SECTIONS[name](environment)
            environment.delete_topics()
    origin["seconds"] = round(time.perf_counter() - _BEGAN)
    return origin, found


_BEGAN = time.perf_counter()


def _origin(size: sizes.Size) -> dict[str, Any]:
    """Describe the machine, the versions and the time of the measurement."""
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
    made = json.dumps({**origin, "rows": [rows.to_json(row) for row in found]}, indent=2, ensure_ascii=False)
    if arguments.output:
        arguments.output.write_text(f"{made}\n", encoding="utf-8")
    if arguments.page:
        from benchmarks import html_report

        arguments.page.write_text(html_report.render(origin, found), encoding="utf-8")
    if arguments.json:
        sys.stdout.write(f"{made}\n")
        return
    print(*rows.describe_origin(origin), rows.table(found), "", rows.summary(found), sep="\n")


if __name__ == "__main__":
    main()
