"""What the memory of a publisher grows by while the bus is gone and it goes on publishing.

All cases at the same time, as no time is measured. Resident memory is compared with what
docs/delivery.md promises; half-way it must have stopped growing.
"""

from contextlib import ExitStack
from typing import Any

from benchmarks import child_protocol, measure, rows
from benchmarks.bare_clients import CLIENTS
from benchmarks.environment import Scene
from benchmarks.peers import Child
from benchmarks.rows import Row, Target

MEGABYTE = 2**20
WARM = 5_000
EACH = 2048  # bytes that a record takes besides its own, at most
WITHIN, FLAT = Target("≤", 1.0), Target("≤", 1.05)


def memory(scene: Scene) -> list[Row]:
    """Let each client library publish with a spool and without, while the broker is dead."""
    size, cluster = scene.size, scene.cluster
    group = f"memory, bus gone for {size.gone_seconds:g} s at 5,000/s"
    with ExitStack() as stack:
        children = {}
        for client in CLIENTS:
            for spool in ("no spool", "spool"):
                where = str(scene.directory / f"spool-{client}-gone") if spool == "spool" else ""
                child = Child("memory", f"{cluster.url}/?client={client}", str(size.outbox_bytes), where)
                children[f"{client}, {spool}"] = stack.enter_context(child)
        for child in children.values():
            child.ask("prepare", min(WARM, size.each))
        cluster.kill_node(1)
        stack.callback(cluster.start_node, 1)
        measure.say(f"publishing for {size.gone_seconds:g} s while the broker is gone")
        for child in children.values():
            child.tell("work", round(size.gone_seconds * 1000))
        seen = {name: child.answer() for name, child in children.items()}
    return [
        row
        for name in seen
        for row in rows_of(group, name, seen[name], promised(size.outbox_bytes, spool="no spool" not in name))
    ]


def promised(outbox_bytes: int, *, spool: bool) -> int:
    """Return what a process may grow by."""
    value, _ = child_protocol.message()
    once = outbox_bytes + outbox_bytes // len(value) * EACH
    return 2 * once if spool else once


def rows_of(group: str, name: str, seen: dict[str, Any], bound: int) -> list[Row]:
    """Make the rows of one case."""
    limit, second = f"what is promised, {bound // MEGABYTE} MiB", seen["second"]
    grown = max(seen["first"], second) - seen["before"]
    flat = rows.spread([second / seen["first"]])
    return [
        Row(group, f"{name}: grown by", _mib(grown), "MiB", limit, rows.spread([grown / bound]), WITHIN),
        Row(group, f"{name}: 2nd half", _mib(second), "MiB", "1st half", flat, FLAT),
    ]


def _mib(found: float) -> rows.Spread:
    return rows.spread([found / MEGABYTE])
