"""``python -m faults``: publishers and listeners under fire, and a table of what came of it.

Everything runs in processes of its own, over real brokers and files; ``faults.checker``, which
knows nothing of the product, decides. Ends with 1 when a row broke a promise. ``fuzz`` instead of
the names of faults feeds hostile input to everything that parses, ``audit`` looks up what is
known of the packages that are installed.
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
from faults.nemesis import broken_products, brokers, combined, listeners, logs, networks, publishers
from faults.rows import Row
from faults.run import Fault, Load, play
from faults.topology import disks, namespaces
from faults.topology.topologies import PLACES
from notifier_kafka.jvm import jars, java

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for room in (brokers, networks, publishers, listeners, combined, logs)
    for fault in room.FAULTS
}
NEEDS = {networks.NAMESPACE: namespaces.owned, disks.MOUNTED: disks.usable, disks.SLOWED: disks.throttled}
CLIENTS = ("confluent-kafka", "kafka-python")
# What --load plays: a fault of each kind, at a rate that three brokers on two processors keep up with.
MAIN = ("leader-killed", "client-cut-off", "publisher-killed", "listener-killed")
HEAVY = 5000.0
UNITS = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """Read a duration such as 90, 90s, 60m or 2h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 90, 60m or 2h")
    return float(found[1]) * UNITS[found[2] or "s"]


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m faults", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="FAULT", help="default all; see --list")
    add("--list", action="store_true", help="list the faults and end")
    add("--seconds", type=seconds, default=10.0, metavar="TIME", help="for each at least; default 10")
    add(
        "--load",
        type=int,
        default=0,
        metavar="N",
        help=f"for each until so many were offered, by default {', '.join(MAIN)}",
    )
    add("--rate", type=float, help=f"what each publisher sends a second; default 200, with --load {HEAVY:g}")
    add("--client", choices=[*CLIENTS, "both"], default=CLIENTS[0])
    add("--place", choices=PLACES, help="only there, instead of wherever each fault can happen")
    add("--rounds", type=int, default=1, help="how often all of it")
    add("--for", type=seconds, dest="lasting", metavar="TIME", help="rounds until that is over: 60m")
    add(
        "--sabotage",
        default="",
        choices=broken_products.NAMES,
        metavar="NAME",
        help=f"break the product: {', '.join(broken_products.NAMES)}",
    )
    add("--json", action="store_true", help="print the rows as JSON, a line each")
    add("--keep", type=pathlib.Path, metavar="DIR", help="leave journals and logs there")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(FAULTS):
        parser.error(f"no fault {', '.join(sorted(unknown))}: see --list")
    if nowhere := [name for name in given.names if given.place and given.place not in FAULTS[name].places]:
        parser.error(f"{', '.join(nowhere)}: not in {given.place}: see --list")
    if given.load and not given.names:
        given.place = given.place or "three"
    given.names = given.names or list(MAIN if given.load else FAULTS)
    given.rate = given.rate or (HEAVY if given.load else 200.0)
    return given


def chosen(given: argparse.Namespace) -> Iterator[tuple[str, Fault]]:
    """Yield faults with their places, those of a place together."""
    faults = [FAULTS[name] for name in given.names]
    for place in [given.place] if given.place else PLACES:
        yield from ((place, fault) for fault in faults if place in fault.places)


def rows(given: argparse.Namespace, home: pathlib.Path) -> Iterator[Row]:
    """Play all faults, in rounds; none begins when the time that was given is over."""
    load = Load(given.seconds, given.rate, given.sabotage, given.load)
    begun = time.monotonic()
    for number in itertools.count(1):
        if number > given.rounds and not given.lasting:
            return
        for kind in PLACES:
            faults = [fault for where, fault in chosen(given) if where == kind]
            for row in _there(kind, faults, given.client, load, home / f"round-{number}-{kind}"):
                yield row
                if given.lasting and time.monotonic() - begun > given.lasting:
                    print(f"time is over: round {number} ends at {row.fault}, {row.bus}", file=sys.stderr)
                    return


def _there(kind: str, faults: Sequence[Fault], client: str, load: Load, home: pathlib.Path) -> Iterator[Row]:
    if not (faults := [fault for fault in faults if _possible(fault)]):
        return
    home.mkdir(parents=True)
    clients = CLIENTS if client == "both" else (client,)
    with PLACES[kind](home / "place") as place:
        for fault in faults:
            for each in clients if place.cluster else ("",):
                directory = home / f"{fault.name}-{each}"
                directory.mkdir()
                yield play(fault, place, each, load, directory)


def _possible(fault: Fault) -> bool:
    if not fault.needs or NEEDS[fault.needs]():
        return True
    print(f"{fault.name}: left out: it needs {fault.needs}", file=sys.stderr)
    return False


def main() -> int:
    if sys.argv[1:2] == ["fuzz"]:
        from faults.fuzzing import fuzz

        return int(fuzz.main(sys.argv[2:]))
    if sys.argv[1:2] == ["audit"]:
        return audit.main()
    given = parsed(sys.argv[1:])
    if given.list:
        for fault in FAULTS.values():
            print(f"{fault.name:22} {', '.join(fault.places):16} {fault.about}")
        return 0
    if any(place not in ("sqlite", "small-disk") for place, _ in chosen(given)):
        # A namespace has no way to where they come from.
        java.find(java.KAFKA)
        jars.fetch(jars.KAFKA)
    namespaces.enter()
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        if namespaces.owned():
            namespaces.prepare(pathlib.Path(temporary))
        return shown(rows(given, given.keep or pathlib.Path(temporary)), as_json=given.json)


def shown(found: Iterable[Row], *, as_json: bool) -> int:
    """Print rows as they come; return the exit code."""
    every: list[Row] = []
    if not as_json:
        print(table.HEAD, flush=True)
    for row in found:
        every.append(row)
        print(json.dumps(dataclasses.asdict(row)) if as_json else table.line(row), flush=True)
    complaints = table.complaints(every) if every else ["nothing was played"]
    print("\n".join(complaints or [f"no promise broken in {len(every)} rows"]), file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
