"""How much the memory of a publisher grows while it publishes and the bus is gone.

All cases run at the same time, as no time is measured. Resident memory is compared with the promise
in docs/delivery.md; in the second half it must not grow any more.
"""

from contextlib import ExitStack
from typing import Any

from benchmarks import child_protocol, measure, rows
from benchmarks.bare_clients import CLIENTS
from benchmarks.environment import Environment
from benchmarks.peers import Child
from benchmarks.rows import Goal, Row

MEBIBYTE = 2**20
WARM_UP_CALLS = 5_000
RECORD_OVERHEAD_BYTES = 2048  # of a record in the outbox besides its own bytes, at most
WITHIN, FLAT = Goal("≤", 1.0), Goal("≤", 1.05)


def memory(environment: Environment) -> list[Row]:
    """Publish by each client library, with and without a spool, while the broker is dead."""
    size, cluster = environment.size, environment.cluster
    group = f"memory, bus gone for {size.gone_seconds:g} s at 5,000/s"
    with ExitStack() as stack:
        children = {}
        for client in CLIENTS:
            for spool in ("no spool", "spool"):
                where = str(environment.directory / f"spool-{client}-gone") if spool == "spool" else ""
                child = Child(
                    "memory_probe", f"{cluster.url}/?client={client}", str(size.outbox_bytes), where
                )
                children[f"{client}, {spool}"] = stack.enter_context(child)
        for child in children.values():
            child.request("prepare", min(WARM_UP_CALLS, size.each))
        cluster.kill_node(1)
        stack.callback(cluster.start_node, 1)
        measure.report_progress(f"publishing for {size.gone_seconds:g} s while the broker is gone")
        for child in children.values():
            child.send("work", round(size.gone_seconds * 1000))
        seen = {name: child.receive() for name, child in children.items()}
    return [
        row
        for name in seen
        for row in rows_of(
            group, name, seen[name], allowed_growth(size.outbox_bytes, spool="no spool" not in name)
        )
    ]


def allowed_growth(outbox_bytes: int, *, spool: bool) -> int:
    """Return the bytes by which a process may grow."""
    value, _ = child_protocol.encode()
    once = outbox_bytes + outbox_bytes // len(value) * RECORD_OVERHEAD_BYTES
    return 2 * once if spool else once


def rows_of(group: str, name: str, seen: dict[str, Any], bound: int) -> list[Row]:
    """Make the rows of one case."""
    limit, second = f"what is promised, {bound // MEBIBYTE} MiB", seen["second"]
    grown = max(seen["first"], second) - seen["before"]
    flat = rows.spread([second / seen["first"]])
    return [
        Row(group, f"{name}: grown by", _mib(grown), "MiB", limit, rows.spread([grown / bound]), WITHIN),
        Row(group, f"{name}: 2nd half", _mib(second), "MiB", "1st half", flat, FLAT),
    ]


def _mib(found: float) -> rows.Spread:
    return rows.spread([found / MEBIBYTE])
