"""What a sink is: where metric rows go. Found by entry point, called with its place."""

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
    """Keeps metric rows (``rows.ROW``) and, in the same place, which batch they are of."""

    def last(self, job: str) -> int | None:
        """Return the last batch that was written, 0 for none; None when nothing is kept.

        Raises ``ConfigurationError`` when the place holds what is not of this job.
        """

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        """Take the rows and note the batch.

        All rows of a metric and window come at once, and replace those from before. After
        a crash the same batch is written again.
        """


@runtime_checkable
class ChecksMetrics(Protocol):
    """A sink that cannot keep every set of metrics apart."""

    def check(self, metrics: Sequence[Metric]) -> None:
        """Refuse what it cannot keep, by ``ConfigurationError``."""


Maker = Callable[[str, cfg.ConfigOpts], Sink]


def load(output: str, conf: cfg.ConfigOpts) -> Sink:
    """Make the sink that ``KIND:PLACE`` names."""
    kind, colon, place = output.partition(":")
    if not colon:
        raise ConfigurationError(
            f"output {secret_masking.output(output)!r} is not of the form KIND:PLACE, "
            "such as parquet:/tmp/metrics"
        )
    make: Maker = plugins.load(NAMESPACE, kind)
    return make(place, conf)
