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
    """What a run did: records by outcome, metric rows and failures by output, offsets by partition."""

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

    @contextlib.contextmanager
    def record_failure(self, output: str) -> Iterator[None]:
        """Record an exception as the failure of an output, so that the others go on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a sink may come from anywhere, and Spark has many errors
            self.failures[output] = spark_errors.summarize(error)

    def add_loss(self, lost: Sequence[Loss], limits: RunLimits) -> None:
        """Count what was deleted before it was counted. Raises ``LogUnusable`` when that is not allowed."""
        for text, records in lost:
            if not limits.allow_loss:
                raise LogUnusable(f"{text}; --allow-loss continues without them")
            LOG.warning("%s", text)
            self.lost += records

    def add_batch(self, planned: Plan, counts: Mapping[str, Any]) -> None:
        """Add the counts of a batch."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + counts[name])
        self.malformed += sum(counts["malformed"].values())
        self.batches += 1
        for span in planned.spans:
            key = f"{span.partition.topic}[{span.partition.number}]"
            start, stop = self.offsets.get(key, [span.start, span.stop])
            self.offsets[key] = [min(start, span.start), max(stop, span.stop)]


@dataclass
class RunProgress:
    """How far a run is. Another thread reads it to show it."""

    done: int = 0
    total: int = 0
    batch: int = 0
    batch_records: int = 0
