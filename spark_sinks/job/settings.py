"""The settings of a job, from options and arguments, checked before Spark starts."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from notifier_kafka.config import options as framework
from notifier_kafka.config import reading
from notifier_kafka.errors import ConfigurationError
from spark_sinks.job import options
from spark_sinks.job.options import SparkSettings
from spark_sinks.language import metrics, metrics_file
from spark_sinks.language.metrics import Metric
from spark_sinks.outputs import secret_masking
from spark_sinks.state.ledger import CHECKPOINT_DIRECTORY

CONSOLE = "console:"
_DIRECTORIES = ("parquet", "csv", "json")


@dataclass(frozen=True)
class JobSettings:
    """What a job needs, as far as it can be checked without Spark."""

    metrics: tuple[Metric, ...]
    outputs: tuple[str, ...]
    checkpoint: Path
    options: SparkSettings


def read(conf: cfg.ConfigOpts, **given: object) -> JobSettings:
    """Read ``[spark_sinks]``. Arguments of the command line override options."""
    values = reading.read_group(conf, options.GROUP, options.OPTS)
    values.update({name: value for name, value in given.items() if value is not None})
    values["spark_properties"] = _properties(values["spark_properties"])
    group = SparkSettings(**values)
    try:
        window = metrics.parse_width(group.window)
    except ValueError as error:
        raise ConfigurationError(f"[spark_sinks] window: {error}") from None
    found = (
        metrics_file.read(group.metrics_file, window) if group.metrics_file else metrics_file.default(window)
    )
    outputs = tuple(group.output or [CONSOLE])
    _refuse_shared(outputs)
    return JobSettings(found, outputs, _checkpoint(group.checkpoint_dir, outputs), group)


def _properties(lines: Sequence[str]) -> dict[str, str]:
    """Read Spark's properties. A comma ends a property when the name of the next one follows."""
    found = {}
    for each in (each.strip() for line in lines for each in secret_masking.NEXT.split(line)):
        name, colon, value = each.partition(":")
        if not colon or not name.startswith("spark."):
            # Only the name: the rest may be a secret.
            begins = re.split(r"[^\w.-]", each, maxsplit=1)[0]
            raise ConfigurationError(
                f"[spark_sinks] spark_properties: {begins!r} is not of the form spark.NAME:VALUE"
            )
        found[name.strip()] = value.strip()
    return found


def metric_digests(wanted: Sequence[Metric]) -> dict[str, str]:
    """Return a hash of each metric's definition, by its name."""
    return {metric.name: hashlib.sha256(repr(metric).encode()).hexdigest()[:16] for metric in wanted}


def _refuse_shared(outputs: Sequence[str]) -> None:
    """Refuse two outputs in one directory: they would mix their batches."""
    seen: dict[Path, str] = {}
    for output in outputs:
        kind, _, place = output.partition(":")
        if kind in _DIRECTORIES and place:
            other = seen.setdefault(Path(place).absolute(), output)
            if other != output:
                raise ConfigurationError(
                    f"outputs {other} and {output} are the same directory; name another one"
                )


def _checkpoint(named: str | None, outputs: Sequence[str]) -> Path:
    if named:
        return Path(named).absolute()
    for output in outputs:
        kind, _, place = output.partition(":")
        if kind in _DIRECTORIES and place:
            return Path(place).absolute() / CHECKPOINT_DIRECTORY
    return framework.data_directory() / "aggregate"
