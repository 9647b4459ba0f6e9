"""Judges from histories alone whether a delivery promise was broken. Shares no code with the product.

``python checker.py DIRECTORY POOL[=REPEATS]...`` reads ``*.history`` there and prints the verdict. The
exit code is 1 when a promise was broken. Each POOL has to handle everything, and may handle REPEATS
notifications again at most. A history has one JSON object a line; ``type`` says what happened:

========================  ==========================================================================
publisher: started        a new process; what an earlier one had accepted may arrive at any time, or never
offered                   id, topic, key, number (grows within a key of one history); before the call
accepted                  id; the call returned
acknowledged              id, perhaps partition and offset; the product says that it is durable
receipts                  ids, locations; the receipts of these acknowledged ids, in any order
spooled                   id; the product says that it is on the local disk
failed                    id, reason; the product reported an error
flushed                   left; with 0 all that was accepted so far and did not fail is acknowledged
harness: erased           an administrator deleted what was offered before: it is promised no longer
listener: listening       pool, topics; a pool without this event listens to everything
handled                   pool, id, at, perhaps topic, key, number, message_id, partition, offset, returned
refused                   pool, id, perhaps partition, offset, returned; the endpoint raised or requeued it
dead_lettered             pool, id; it is among the dead letters of the pool
========================  ==========================================================================

A line without its end does not count: its process was killed while it wrote it.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Event = dict[str, Any]
Location = tuple[int, int]  # partition and offset
ANY_PROCESS = -1


@dataclasses.dataclass
class Verdict:
    """Counts, and an example of each broken promise. ``handled`` counts over all pools."""

    offered: int = 0
    acknowledged: int = 0
    spooled: int = 0
    failed: int = 0
    handled: int = 0
    refused: int = 0
    repeated: int = 0
    lost: int = 0
    beyond_bound: int = 0
    reordered: int = 0
    invented: int = 0
    wrong_pool: int = 0
    false_acknowledged: int = 0
    examples: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def is_valid(self) -> bool:
        return not self.examples

    def add_violation(self, what: str, example: str, count: int = 1) -> None:
        setattr(self, what, getattr(self, what) + count)
        self.examples.setdefault(what, example)

    def __str__(self) -> str:
        counts = {name: value for name, value in vars(self).items() if name != "examples"}
        row = " ".join(f"{name} {value}" for name, value in counts.items())
        return "\n".join([row] + [f"{what}: {example}" for what, example in self.examples.items()])


class PublisherHistory:
    """What all publishers recorded."""

    def __init__(self) -> None:
        self.offered: dict[str, Event] = {}
        self.acknowledged: dict[str, Event] = {}
        self.receipts: dict[tuple[str, ...], list[Location]] = {}
        self.spooled: set[str] = set()
        self.failed: set[str] = set()
        self.erased = 0

    def is_orphan(self, each: str) -> bool:
        """Tell whether its process ended before anything was known of it: it may arrive at any time."""
        return self.offered[each]["died"] and each not in self.acknowledged and each not in self.spooled

    @property
    def promised(self) -> set[str]:
        confirmed = self.acknowledged.keys() | self.spooled
        # What was never offered stays in: _check_acknowledged reports it.
        return {
            each for each in confirmed if self.offered.get(each, {}).get("at", self.erased) >= self.erased
        }

    def read(self, history: str, events: Iterable[Event]) -> None:
        accepted: dict[str, Event] = {}
        mine: list[Event] = []
        process = 0
        for event in events:
            match event["type"]:
                case "offered":
                    mine.append(event | {"history": history, "process": process, "died": False})
                    self.offered[event["id"]] = mine[-1]
                # A failure may be reported before the call returns.
                case "accepted" if event["id"] not in self.failed:
                    accepted[event["id"]] = event
                case "acknowledged" | "receipts":
                    self._acknowledge(event)
                case "spooled":
                    self.spooled.add(event["id"])
                case "failed":
                    self.failed.add(event["id"])
                    accepted.pop(event["id"], None)
                case "started":
                    accepted.clear()
                    process += 1
                    _end_process(mine)
                case "erased":
                    self.erased = max(self.erased, event["at"])
                case "flushed" if not event["left"]:
                    self.acknowledged = accepted | self.acknowledged

    def _acknowledge(self, event: Event) -> None:
        if event["type"] == "receipts":
            ids, locations = event["ids"], event["locations"]
        else:
            self.acknowledged[event["id"]] = event
            ids, locations = [event["id"]], [(event.get("partition"), event.get("offset"))]
        # For a record that was sent twice a broker may not know the offset.
        if all(offset is not None and offset >= 0 for _, offset in locations):
            self.receipts[tuple(ids)] = [(number, offset) for number, offset in locations]


def _end_process(offered: list[Event]) -> None:
    for each in offered:
        each["died"] = True
    offered.clear()


class PoolHistory:
    """What the listeners of one pool recorded."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.handled: list[Event] = []
        self.refused: set[str] = set()
        self.refusals: list[Event] = []
        self.dead_lettered: set[str] = set()

    def read(self, event: Event) -> None:
        match event["type"]:
            case "listening":
                self.topics |= set(event["topics"])
            case "handled":
                self.handled.append(event)
            case "refused":
                self.refused.add(event["id"])
                self.refusals.append(event)
            case "dead_lettered":
                self.dead_lettered.add(event["id"])

    def listens_to(self, topic: str | None) -> bool:
        return not self.topics or topic in self.topics


def check(directory: str | pathlib.Path, pools: Mapping[str, int]) -> Verdict:
    """Judge the histories of ``directory``; ``pools`` says how many repetitions each may have."""
    publishers = PublisherHistory()
    histories: dict[str, PoolHistory] = {pool: PoolHistory() for pool in pools}
    for path in sorted(pathlib.Path(directory).glob("*.history")):
        events = list(read_events(path))
        publishers.read(path.stem, events)
        for event in events:
            if "pool" in event:
                histories.setdefault(event["pool"], PoolHistory()).read(event)
    verdict = Verdict(
        offered=len(publishers.offered),
        acknowledged=len(publishers.acknowledged),
        spooled=len(publishers.spooled),
        failed=len(publishers.failed),
    )
    _check_acknowledged(publishers, verdict)
    refused = {pool: each.refused for pool, each in histories.items()}
    for pool, each in histories.items():
        others = set().union(*(ids for name, ids in refused.items() if name != pool))
        if pool in pools:
            _check_lost(pool, each, publishers, verdict)
        _check_origin(pool, each, publishers, verdict)
        _check_receipts(pool, each, publishers, verdict)
        _check_repeats(pool, each, others, pools.get(pool, 0), verdict)
        _check_order(pool, each, publishers, verdict)
    return verdict


def read_events(path: pathlib.Path) -> Iterator[Event]:
    """Read the finished events of a history."""
    with path.open("rb") as file:
        # Line by line: a publisher that is started again reads its own long history.
        yield from (json.loads(line) for line in file if line.endswith(b"\n"))


def _check_acknowledged(publishers: PublisherHistory, verdict: Verdict) -> None:
    for each in publishers.acknowledged.keys() & publishers.failed:
        verdict.add_violation("false_acknowledged", f"{each}: acknowledged and failed")
    for each in publishers.promised - publishers.offered.keys():
        verdict.add_violation("invented", f"{each}: acknowledged or spooled, never offered")
    owners: dict[tuple[str, int, int], str] = {}
    promised = publishers.promised
    for ids, locations in publishers.receipts.items():
        # A topic that was deleted and created again uses the same offsets again.
        if not promised.issuperset(ids):
            continue
        topic = publishers.offered.get(ids[0], {}).get("topic", "")
        for location in locations:
            if (topic, *location) in owners:
                other = owners[topic, *location]
                verdict.add_violation(
                    "false_acknowledged", f"{ids[-1]} and {other} have one location: {location}"
                )
            owners[topic, *location] = ids[0]


def _check_lost(pool: str, listeners: PoolHistory, publishers: PublisherHistory, verdict: Verdict) -> None:
    settled = {event["id"] for event in listeners.handled} | listeners.dead_lettered
    for each in sorted(publishers.promised - settled):
        if listeners.listens_to(publishers.offered.get(each, {}).get("topic")):
            verdict.add_violation("lost", f"{each}: pool {pool} never handled it")


def _check_origin(pool: str, listeners: PoolHistory, publishers: PublisherHistory, verdict: Verdict) -> None:
    """Find what was never offered, what has other content, and what is in the wrong pool."""
    names: dict[str, str] = {}
    for event in listeners.handled:
        each = event["id"]
        offered = publishers.offered.get(each)
        if offered is None:
            verdict.add_violation("invented", f"{each}: handled by {pool}, never offered")
            continue
        changed = [
            name for name in ("topic", "key", "number") if event.get(name, offered[name]) != offered[name]
        ]
        if changed:
            verdict.add_violation("invented", f"{each}: offered {offered}, handled {event}")
        name = event.get("message_id", "")
        if names.setdefault(each, name) != name:
            verdict.add_violation("invented", f"{each}: came with two message ids, {names[each]} and {name}")
        if not listeners.listens_to(offered["topic"]):
            verdict.add_violation("wrong_pool", f"{each}: {pool} does not listen to {offered['topic']}")
        if event.get("returned") and each not in listeners.refused:
            verdict.add_violation("invented", f"{each}: came back to {pool}, which had not refused it")


def _check_receipts(
    pool: str, listeners: PoolHistory, publishers: PublisherHistory, verdict: Verdict
) -> None:
    """Compare the locations in receipts with those from where a notification was handled.

    What was sent twice has two locations, and either may come first. So a receipt counts only when
    the pool has read beyond its location.
    """
    came: dict[str, list[Location]] = {}
    past: dict[tuple[str, int], int] = {}
    for event in listeners.handled + listeners.refusals:
        topic = publishers.offered.get(event["id"], {}).get("topic", "")
        if event.get("offset") is not None:
            number, offset = event["partition"], event["offset"]
            came.setdefault(event["id"], []).append((number, offset))
            past[topic, number] = max(offset, past.get((topic, number), -1))
    promised = publishers.promised
    for ids, locations in publishers.receipts.items():
        topic = publishers.offered.get(ids[0], {}).get("topic", "")
        if not all(past.get((topic, number), -1) >= offset for number, offset in locations):
            continue
        in_receipts = set(locations)
        for each in promised.intersection(ids) & came.keys():
            if in_receipts.isdisjoint(came[each]):
                verdict.add_violation(
                    "false_acknowledged",
                    f"{each}: came to {pool} from {came[each]}, never from {locations[:3]}",
                )


def _check_repeats(
    pool: str, listeners: PoolHistory, elsewhere: set[str], bound: int, verdict: Verdict
) -> None:
    times = collections.Counter(event["id"] for event in listeners.handled)
    verdict.handled += len(times)
    verdict.refused += len(listeners.refused)
    repeated = {each: count - 1 for each, count in times.items() if count > 1}
    total = sum(repeated.values())
    verdict.repeated += total
    if total <= bound:
        return
    verdict.add_violation("beyond_bound", f"{pool} repeated {total}, allowed are {bound}", total - bound)
    # Only another pool had refused these.
    for each in sorted(repeated.keys() & (elsewhere - listeners.refused)):
        verdict.add_violation("wrong_pool", f"{each}: came again to {pool}, which had not refused it")


def _check_order(pool: str, listeners: PoolHistory, publishers: PublisherHistory, verdict: Verdict) -> None:
    """Compare, within each key, the order of first handling with the order of offers.

    Repetitions do not count: after a fault a pool returns to its last commit. What was refused comes
    back later than its neighbours by design. What a publisher had sent when it was killed may wait in
    a broker while its next process publishes: its order is checked within its own process only.
    """
    seen: set[str] = set()
    last: dict[tuple[str, str, str | None, int], tuple[int, str]] = {}
    for event in sorted(listeners.handled, key=lambda event: event["at"]):
        each = event["id"]
        offered = publishers.offered.get(each)
        if offered is None or each in seen or each in listeners.refused:
            continue
        seen.add(each)
        if offered["key"] is None:
            continue
        processes = {offered["process"]} if publishers.is_orphan(each) else {offered["process"], ANY_PROCESS}
        sequences = [(offered["history"], offered["topic"], offered["key"], process) for process in processes]
        before = max(last.get(sequence, (-1, "")) for sequence in sequences)
        if offered["number"] < before[0]:
            verdict.add_violation(
                "reordered", f"{each}: {pool} handled it after {before[1]}, key {offered['key']}"
            )
        else:
            last |= dict.fromkeys(sequences, (offered["number"], each))


def _main() -> int:
    parser = argparse.ArgumentParser(description="Judge histories of publishers and listeners.")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("pools", metavar="POOL[=REPEATS]", nargs="+")
    arguments = parser.parse_args()
    pools = {name: int(bound or 0) for name, _, bound in (each.partition("=") for each in arguments.pools)}
    verdict = check(arguments.directory, pools)
    print(verdict)
    return 0 if verdict.is_valid else 1


if __name__ == "__main__":
    sys.exit(_main())
