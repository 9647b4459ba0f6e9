"""Decides from journals alone whether a delivery promise was broken. Shares no code with the product.

``python checker.py DIRECTORY POOL[=REPEATS]...`` reads ``*.journal`` there, prints the verdict and ends
with 1 when a promise was broken. POOL is a pool that has to handle everything, REPEATS how often at most
it may handle something again. A journal has one JSON object a line; ``what`` says what happened:

========================  ==========================================================================
publisher: started        what an earlier life had accepted died with it, or arrives whenever it likes
offered                   id, topic, key, number (grows within a key of one journal); before the call
accepted                  id; the call returned
acknowledged              id, perhaps partition and offset; durable, says the product
landed                    ids, places; these places, in no order, are those of these acknowledged ids
spooled                   id; on the local disk, says the product
failed                    id, reason; an error, says the product
flushed                   left; with 0 all that is accepted so far and did not fail is acknowledged
harness: erased           all that was offered before is promised no longer: somebody deleted it
listener: listening       pool, topics; where nobody says it, a pool listens to everything
handled                   pool, id, at, perhaps topic, key, number, message_id, partition, offset, returned
refused                   pool, id, perhaps partition, offset, returned; the endpoint raised or wants it again
set_aside                 pool, id; found among the dead letters of the pool
========================  ==========================================================================

A line without its end was being written when its process was killed: it does not count.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Line = dict[str, Any]
Place = tuple[int, int]  # partition and offset
ALL_LIVES = -1


@dataclasses.dataclass
class Verdict:
    """Counts, and an example of each broken promise. ``handled`` counts over all pools."""

    offered: int = 0
    acknowledged: int = 0
    spooled: int = 0
    failed: int = 0
    handled: int = 0
    refused: int = 0
    duplicated: int = 0
    lost: int = 0
    beyond_bound: int = 0
    reordered: int = 0
    invented: int = 0
    wrong_pool: int = 0
    false_acknowledged: int = 0
    examples: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def faultless(self) -> bool:
        return not self.examples

    def blame(self, what: str, example: str, count: int = 1) -> None:
        setattr(self, what, getattr(self, what) + count)
        self.examples.setdefault(what, example)

    def __str__(self) -> str:
        counts = {name: value for name, value in vars(self).items() if name != "examples"}
        row = " ".join(f"{name} {value}" for name, value in counts.items())
        return "\n".join([row] + [f"{what}: {example}" for what, example in self.examples.items()])


class Published:
    """What publishers say."""

    def __init__(self) -> None:
        self.offered: dict[str, Line] = {}
        self.acknowledged: dict[str, Line] = {}
        self.landed: dict[tuple[str, ...], list[Place]] = {}
        self.spooled: set[str] = set()
        self.failed: set[str] = set()
        self.erased = 0

    def is_orphan(self, each: str) -> bool:
        """Tell whether its publisher died before anything was said of it: it may arrive whenever it likes."""
        return self.offered[each]["died"] and each not in self.acknowledged and each not in self.spooled

    @property
    def promised(self) -> set[str]:
        said = self.acknowledged.keys() | self.spooled
        # Who never offered it is found out by that.
        return {each for each in said if self.offered.get(each, {}).get("at", self.erased) >= self.erased}

    def read(self, journal: str, lines: Iterable[Line]) -> None:
        accepted: dict[str, Line] = {}
        mine: list[Line] = []
        life = 0
        for line in lines:
            match line["what"]:
                case "offered":
                    mine.append(line | {"journal": journal, "life": life, "died": False})
                    self.offered[line["id"]] = mine[-1]
                # The failure may be told while the call returns.
                case "accepted" if line["id"] not in self.failed:
                    accepted[line["id"]] = line
                case "acknowledged" | "landed":
                    self._acknowledge(line)
                case "spooled":
                    self.spooled.add(line["id"])
                case "failed":
                    self.failed.add(line["id"])
                    accepted.pop(line["id"], None)
                case "started":
                    accepted.clear()
                    life += 1
                    _end_life(mine)
                case "erased":
                    self.erased = max(self.erased, line["at"])
                case "flushed" if not line["left"]:
                    self.acknowledged = accepted | self.acknowledged

    def _acknowledge(self, line: Line) -> None:
        if line["what"] == "landed":
            ids, places = line["ids"], line["places"]
        else:
            self.acknowledged[line["id"]] = line
            ids, places = [line["id"]], [(line.get("partition"), line.get("offset"))]
        # A broker that was sent something again may know no more than that it has it.
        if all(offset is not None and offset >= 0 for _, offset in places):
            self.landed[tuple(ids)] = [(number, offset) for number, offset in places]


def _end_life(offered: list[Line]) -> None:
    for each in offered:
        each["died"] = True
    offered.clear()


class Listened:
    """What the listeners of one pool say."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.handled: list[Line] = []
        self.refused: set[str] = set()
        self.refusals: list[Line] = []
        self.set_aside: set[str] = set()

    def read(self, line: Line) -> None:
        match line["what"]:
            case "listening":
                self.topics |= set(line["topics"])
            case "handled":
                self.handled.append(line)
            case "refused":
                self.refused.add(line["id"])
                self.refusals.append(line)
            case "set_aside":
                self.set_aside.add(line["id"])

    def listens_to(self, topic: str | None) -> bool:
        return not self.topics or topic in self.topics


def check(directory: str | pathlib.Path, pools: Mapping[str, int]) -> Verdict:
    """Judge the journals of ``directory``; ``pools`` gives each the repetitions that it may have."""
    published = Published()
    listened: dict[str, Listened] = {pool: Listened() for pool in pools}
    for path in sorted(pathlib.Path(directory).glob("*.journal")):
        said = list(lines(path))
        published.read(path.stem, said)
        for line in said:
            if "pool" in line:
                listened.setdefault(line["pool"], Listened()).read(line)
    verdict = Verdict(
        offered=len(published.offered),
        acknowledged=len(published.acknowledged),
        spooled=len(published.spooled),
        failed=len(published.failed),
    )
    _check_acknowledged(published, verdict)
    refused = {pool: each.refused for pool, each in listened.items()}
    for pool, each in listened.items():
        others = set().union(*(ids for name, ids in refused.items() if name != pool))
        if pool in pools:
            _check_lost(pool, each, published, verdict)
        _check_origin(pool, each, published, verdict)
        _check_places(pool, each, published, verdict)
        _check_repeats(pool, each, others, pools.get(pool, 0), verdict)
        _check_order(pool, each, published, verdict)
    return verdict


def lines(path: pathlib.Path) -> Iterator[Line]:
    """Read the finished lines of a journal."""
    with path.open("rb") as file:
        # Not all of it at once: a publisher that goes on reads what its last life wrote.
        yield from (json.loads(line) for line in file if line.endswith(b"\n"))


def _check_acknowledged(published: Published, verdict: Verdict) -> None:
    for each in published.acknowledged.keys() & published.failed:
        verdict.blame("false_acknowledged", f"{each}: acknowledged and failed")
    for each in published.promised - published.offered.keys():
        verdict.blame("invented", f"{each}: acknowledged or spooled, never offered")
    owners: dict[tuple[str, int, int], str] = {}
    promised = published.promised
    for ids, places in published.landed.items():
        # A topic that was deleted and made again begins anew.
        if not promised.issuperset(ids):
            continue
        topic = published.offered.get(ids[0], {}).get("topic", "")
        for place in places:
            if (topic, *place) in owners:
                other = owners[topic, *place]
                verdict.blame("false_acknowledged", f"{ids[-1]} and {other} in one place: {place}")
            owners[topic, *place] = ids[0]


def _check_lost(pool: str, listened: Listened, published: Published, verdict: Verdict) -> None:
    settled = {line["id"] for line in listened.handled} | listened.set_aside
    for each in sorted(published.promised - settled):
        if listened.listens_to(published.offered.get(each, {}).get("topic")):
            verdict.blame("lost", f"{each}: pool {pool} never handled it")


def _check_origin(pool: str, listened: Listened, published: Published, verdict: Verdict) -> None:
    """Find what nobody offered, what changed on its way, and what went to the wrong pool."""
    names: dict[str, str] = {}
    for line in listened.handled:
        each = line["id"]
        offered = published.offered.get(each)
        if offered is None:
            verdict.blame("invented", f"{each}: handled by {pool}, never offered")
            continue
        changed = [
            name for name in ("topic", "key", "number") if line.get(name, offered[name]) != offered[name]
        ]
        if changed:
            verdict.blame("invented", f"{each}: offered {offered}, handled {line}")
        name = line.get("message_id", "")
        if names.setdefault(each, name) != name:
            verdict.blame("invented", f"{each}: came with two message ids, {names[each]} and {name}")
        if not listened.listens_to(offered["topic"]):
            verdict.blame("wrong_pool", f"{each}: {pool} does not listen to {offered['topic']}")
        if line.get("returned") and each not in listened.refused:
            verdict.blame("invented", f"{each}: came back to {pool}, which had not refused it")


def _check_places(pool: str, listened: Listened, published: Published, verdict: Verdict) -> None:
    """Compare where receipts say that something is with where it came from, of all times that it came.

    What was sent twice has two places, and comes from either first. So this counts only where
    the pool went past the place of the receipt.
    """
    came: dict[str, list[Place]] = {}
    past: dict[tuple[str, int], int] = {}
    for line in listened.handled + listened.refusals:
        topic = published.offered.get(line["id"], {}).get("topic", "")
        if line.get("offset") is not None:
            number, offset = line["partition"], line["offset"]
            came.setdefault(line["id"], []).append((number, offset))
            past[topic, number] = max(offset, past.get((topic, number), -1))
    promised = published.promised
    for ids, places in published.landed.items():
        topic = published.offered.get(ids[0], {}).get("topic", "")
        if not all(past.get((topic, number), -1) >= offset for number, offset in places):
            continue
        told = set(places)
        for each in promised.intersection(ids) & came.keys():
            if told.isdisjoint(came[each]):
                verdict.blame(
                    "false_acknowledged", f"{each}: came to {pool} from {came[each]}, never from {places[:3]}"
                )


def _check_repeats(pool: str, listened: Listened, elsewhere: set[str], bound: int, verdict: Verdict) -> None:
    times = collections.Counter(line["id"] for line in listened.handled)
    verdict.handled += len(times)
    verdict.refused += len(listened.refused)
    repeated = {each: count - 1 for each, count in times.items() if count > 1}
    total = sum(repeated.values())
    verdict.duplicated += total
    if total <= bound:
        return
    verdict.blame("beyond_bound", f"{pool} repeated {total}, allowed are {bound}", total - bound)
    # Wanted again by another pool, and by that one alone.
    for each in sorted(repeated.keys() & (elsewhere - listened.refused)):
        verdict.blame("wrong_pool", f"{each}: came again to {pool}, which had not refused it")


def _check_order(pool: str, listened: Listened, published: Published, verdict: Verdict) -> None:
    """Compare, within each key, the order in which things were first handled with that of the offers.

    Repetitions say nothing: after a fault a pool goes back to its last commit. What was
    refused comes back later than its neighbours by design. What a publisher had sent when it died
    may wait in a broker while its next life publishes: it has its place in its own life only.
    """
    seen: set[str] = set()
    last: dict[tuple[str, str, str | None, int], tuple[int, str]] = {}
    for line in sorted(listened.handled, key=lambda line: line["at"]):
        each = line["id"]
        offered = published.offered.get(each)
        if offered is None or each in seen or each in listened.refused:
            continue
        seen.add(each)
        if offered["key"] is None:
            continue
        lives = {offered["life"]} if published.is_orphan(each) else {offered["life"], ALL_LIVES}
        lanes = [(offered["journal"], offered["topic"], offered["key"], life) for life in lives]
        before = max(last.get(lane, (-1, "")) for lane in lanes)
        if offered["number"] < before[0]:
            verdict.blame("reordered", f"{each}: {pool} handled it after {before[1]}, key {offered['key']}")
        else:
            last |= dict.fromkeys(lanes, (offered["number"], each))


def _main() -> int:
    parser = argparse.ArgumentParser(description="Judge journals of publishers and listeners.")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("pools", metavar="POOL[=REPEATS]", nargs="+")
    arguments = parser.parse_args()
    pools = {name: int(bound or 0) for name, _, bound in (each.partition("=") for each in arguments.pools)}
    verdict = check(arguments.directory, pools)
    print(verdict)
    return 0 if verdict.faultless else 1


if __name__ == "__main__":
    sys.exit(_main())
