"""Where the figures of the page come from: the job's own counts of its batches."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from notifier_kafka.contract.driver import Partition
from spark_sinks.state.ledger import Ledger
from spark_sinks.state.plan import Ranges


@dataclass
class Origin:
    """The records of a job by outcome, and their offsets."""

    input: str
    batches: int
    read: int = 0
    counted: int = 0
    duplicate: int = 0
    late: int = 0
    misdated: int = 0
    malformed: Counter[str] = field(default_factory=Counter)
    offsets: dict[Partition, Ranges] = field(default_factory=dict)


def read(checkpoint: Path) -> Origin | None:
    """Read a job's counts; None when there is no job. If it is running, the current batch is left out."""
    job = checkpoint / "job.json"
    if not job.exists():
        return None
    ledger = Ledger(checkpoint)
    found = Origin(str(json.loads(job.read_bytes()).get("input")), ledger.last())
    sums = ledger.totals()
    found.read, found.counted = sums["read"], sums["decoded"]
    found.duplicate, found.late, found.misdated = sums["duplicate"], sums["late"], sums["misdated"]
    found.malformed.update(sums["malformed"])
    found.offsets = ledger.counted()
    return found
