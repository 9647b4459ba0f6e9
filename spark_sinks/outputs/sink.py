"""What a sink is: a place for metric rows. Sinks are found by entry point."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa
from oslo_config import cfg

from notifier_kafka.contract import plugins
from notifier_kafka.errors import ConfigurationError
from spark_sinks.language.metrics import Metric
from spark_sinks.outputs import secret_masking

NAMESPACE = "spark_sinks.sinks"


class Sink(Protocol):
    """Stores metric rows (``rows.ROW``) and, in the same place, the batch that they belong to."""

    def last(self, job: str) -> int | None:
        """Return the last batch that was written, 0 for none; None when the sink stores nothing.

        Raises ``ConfigurationError`` when the place holds something else than this job's rows.
        """

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        """Write the rows and the batch.

        All rows of a metric and window come together, and replace the earlier ones. After a crash
        the same batch is written again.
        """


@runtime_checkable
class ChecksMetrics(Protocol):
    """A sink that cannot store every set of metrics."""

    def check(self, metrics: Sequence[Metric]) -> None:
        """Raise ``ConfigurationError`` for metrics that it cannot store."""


Maker = Callable[[str, cfg.ConfigOpts], Sink]


def load(output: str, conf: cfg.ConfigOpts) -> Sink:
    """Make the sink of ``KIND:PLACE``."""
    kind, colon, place = output.partition(":")
    if not colon:
        raise ConfigurationError(
            f"output {secret_masking.output(output)!r} is not of the form KIND:PLACE, "
            "such as parquet:/tmp/metrics"
        )
    make: Maker = plugins.load(NAMESPACE, kind)
    return make(place, conf)
