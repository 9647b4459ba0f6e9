"""``python -m faults``: inject faults under load, and print a table of what was lost or repeated.

All publishers and listeners are processes of their own, over real brokers and files.
``faults.checker``, which shares no code with the product, judges. The exit code is 1 when a row
broke a promise. ``python -m faults fuzz`` feeds hostile input to all that parses;
``python -m faults audit`` looks up known vulnerabilities of the installed packages.
"""

import argparse
import dataclasses
import itertools
import json
import pathlib
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence

from faults import audit, table
from faults.fault import Fault, Workload
from faults.nemesis import brokers, combined, listeners, logs, networks, publishers, saboteurs
from faults.rows import Row
from faults.run import run_fault
from faults.topology import disks, namespaces
from faults.topology.topologies import TOPOLOGIES
from notifier_kafka.jvm import jars, java

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for module in (brokers, networks, publishers, listeners, combined, logs)
    for fault in module.FAULTS
}
REQUIREMENTS = {
    networks.NAMESPACE: namespaces.is_entered,
    disks.MOUNT_RIGHTS: disks.can_mount,
    disks.THROTTLE_RIGHTS: disks.can_throttle,
}
CLIENTS = ("confluent-kafka", "kafka-python")
# What --load runs: a fault of each kind, at a rate that three brokers on two processors sustain.
MAIN_FAULTS = ("leader-killed", "client-cut-off", "publisher-killed", "listener-killed")
HEAVY_RATE = 5000.0
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}


def parse_duration(text: str) -> float:
    """Read a duration such as 90, 90s, 60m or 2h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90, 60m or 2h")
    return float(found[1]) * UNIT_SECONDS[found[2] or "s"]


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m faults", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="FAULT", help="a name from --list; default: all")
    add("--list", action="store_true", help="list the faults and where each can happen")
    add(
        "--seconds",
        type=parse_duration,
        default=10.0,
        metavar="TIME",
        help="at least for each fault; default 10",
    )
    add(
        "--load",
        type=int,
        default=0,
        metavar="N",
        help=f"notifications for each fault, at least; default faults: {', '.join(MAIN_FAULTS)}",
    )
    add(
        "--rate",
        type=float,
        help=f"notifications a second of each publisher; default 200, with --load {HEAVY_RATE:g}",
    )
    add("--client", choices=[*CLIENTS, "both"], default=CLIENTS[0])
    add("--topology", choices=TOPOLOGIES, help="only there; default: everywhere a fault can happen")
    add("--rounds", type=int, default=1, help="repeat all of it so often")
    add(
        "--for",
        type=parse_duration,
        dest="max_seconds",
        metavar="TIME",
        help="repeat until that time is over, such as 60m",
    )
    add(
        "--sabotage",
        default="",
        choices=saboteurs.NAMES,
        metavar="NAME",
        help=f"break the product on purpose: {', '.join(saboteurs.NAMES)}",
    )
    add("--json", action="store_true", help="print each row as a line of JSON")
    add("--keep", type=pathlib.Path, metavar="DIR", help="keep histories and logs there")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(FAULTS):
        parser.error(f"no fault {', '.join(sorted(unknown))}: see --list")
    if nowhere := [
        name for name in given.names if given.topology and given.topology not in FAULTS[name].topologies
    ]:
        parser.error(f"{', '.join(nowhere)}: not in {given.topology}: see --list")
    if given.load and not given.names:
        given.topology = given.topology or "three-brokers"
    given.names = given.names or list(MAIN_FAULTS if given.load else FAULTS)
    given.rate = given.rate or (HEAVY_RATE if given.load else 200.0)
    return given


def select_faults(given: argparse.Namespace) -> Iterator[tuple[str, Fault]]:
    """Yield topologies and faults, those of a topology together."""
    faults = [FAULTS[name] for name in given.names]
    for topology in [given.topology] if given.topology else TOPOLOGIES:
        yield from ((topology, fault) for fault in faults if topology in fault.topologies)


def run_all(given: argparse.Namespace, home: pathlib.Path) -> Iterator[Row]:
    """Run all faults, in rounds; none begins after the given time."""
    workload = Workload(given.seconds, given.rate, given.sabotage, given.load)
    begun = time.monotonic()
    for number in itertools.count(1):
        if number > given.rounds and not given.max_seconds:
            return
        for kind in TOPOLOGIES:
            faults = [fault for where, fault in select_faults(given) if where == kind]
            for row in _run_on(kind, faults, given.client, workload, home / f"round-{number}-{kind}"):
                yield row
                if given.max_seconds and time.monotonic() - begun > given.max_seconds:
                    print(f"time is over: round {number} ends at {row.fault}, {row.bus}", file=sys.stderr)
                    return


def _run_on(
    kind: str, faults: Sequence[Fault], client: str, workload: Workload, home: pathlib.Path
) -> Iterator[Row]:
    if not (faults := [fault for fault in faults if _is_possible(fault)]):
        return
    home.mkdir(parents=True)
    clients = CLIENTS if client == "both" else (client,)
    with TOPOLOGIES[kind](home / "topology") as topology:
        for fault in faults:
            for each in clients if topology.cluster else ("",):
                directory = home / f"{fault.name}-{each}"
                directory.mkdir()
                yield run_fault(fault, topology, each, workload, directory)


def _is_possible(fault: Fault) -> bool:
    if not fault.requires or REQUIREMENTS[fault.requires]():
        return True
    print(f"{fault.name}: skipped: it needs {fault.requires}", file=sys.stderr)
    return False


def main() -> int:
    if sys.argv[1:2] == ["fuzz"]:
        from faults.fuzzing import fuzz

        return int(fuzz.main(sys.argv[2:]))
    if sys.argv[1:2] == ["audit"]:
        return audit.main()
    given = parse_arguments(sys.argv[1:])
    if given.list:
        for fault in FAULTS.values():
            print(f"{fault.name:22} {', '.join(fault.topologies):22} {fault.description}")
        return 0
    if any(topology not in ("sqlite", "small-disk") for topology, _ in select_faults(given)):
        # Before the namespace, which has no route to the package repository.
        java.find(java.KAFKA)
        jars.fetch(jars.KAFKA)
    namespaces.enter()
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        if namespaces.is_entered():
            namespaces.prepare(pathlib.Path(temporary))
        return print_rows(run_all(given, given.keep or pathlib.Path(temporary)), as_json=given.json)


def print_rows(found: Iterable[Row], *, as_json: bool) -> int:
    """Print rows as they come; return the exit code."""
    every: list[Row] = []
    if not as_json:
        print(table.HEADER, flush=True)
    for row in found:
        every.append(row)
        print(json.dumps(dataclasses.asdict(row)) if as_json else table.line(row), flush=True)
    violations = table.violations(every) if every else ["no fault was run"]
    print("\n".join(violations or [f"no promise broken in {len(every)} rows"]), file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
