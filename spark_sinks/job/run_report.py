"""What a run did, and how far it is."""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from notifier_kafka.errors import LogUnusable
from spark_sinks.engine import spark_errors
from spark_sinks.job.offset_discovery import Loss
from spark_sinks.job.run_limits import RunLimits
from spark_sinks.state.ledger import COUNTS
from spark_sinks.state.plan import Plan

LOG = logging.getLogger(__name__)


@dataclass
class RunReport:
    """What a run did."""

    read: int = 0
    decoded: int = 0
    malformed: int = 0
    duplicate: int = 0
    misdated: int = 0
    late: int = 0
    lost: int = 0
    batches: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, list[int]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass
class RunProgress:
    """How far a run is; for people, from another thread."""

    done: int = 0
    total: int = 0
    batch: int = 0
    batch_records: int = 0


@contextlib.contextmanager
def record_failure(name: str, sums: RunReport) -> Iterator[None]:
    """Note the failure of a sink, so that the others go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a sink may be anybody's, and Spark's errors are many
        sums.failures[name] = spark_errors.summarize(error)


def accept_loss(lost: Sequence[Loss], limits: RunLimits, sums: RunReport) -> None:
    """Go on without what is lost, if that was allowed."""
    for text, records in lost:
        if not limits.allow_loss:
            raise LogUnusable(f"{text}; --allow-loss goes on without them")
        LOG.warning("%s", text)
        sums.lost += records


def add(sums: RunReport, planned: Plan, noted: Mapping[str, Any]) -> None:
    """Add what was noted of a batch."""
    for name in COUNTS:
        setattr(sums, name, getattr(sums, name) + noted[name])
    sums.malformed += sum(noted["malformed"].values())
    sums.batches += 1
    for span in planned.spans:
        key = f"{span.partition.topic}[{span.partition.number}]"
        start, stop = sums.offsets.get(key, [span.start, span.stop])
        sums.offsets[key] = [min(start, span.start), max(stop, span.stop)]
