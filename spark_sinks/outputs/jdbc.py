"""``jdbc:``: a table in a database. Python libraries write it from Spark's driver, so no jar is needed."""

from oslo_config import cfg

from notifier_kafka.errors import ConfigurationError
from spark_sinks.outputs.sink import Sink
from spark_sinks.outputs.sqlite import SqliteSink


def make_sink(place: str, conf: cfg.ConfigOpts) -> Sink:  # noqa: ARG001 - every sink is given it
    """Make the sink of ``sqlite:FILE`` or ``postgresql://HOST/DATABASE``."""
    kind, _, rest = place.partition(":")
    if kind == "sqlite" and rest:
        return SqliteSink(rest)
    if kind == "postgresql" and rest:
        from spark_sinks.outputs.postgresql import PostgresqlSink

        return PostgresqlSink(place)
    raise ConfigurationError(
        f"output jdbc:{kind}: use jdbc:sqlite:FILE or jdbc:postgresql://USER@HOST/DATABASE"
    )
