"""The options of the Spark sinks, group ``[spark_sinks]``. Imports no pyspark."""

from oslo_config import cfg

GROUP = "spark_sinks"

OPTS = [
    cfg.StrOpt("master", default="local[*]", help="The Spark master that runs the job."),
    cfg.StrOpt("metrics_file", help="The YAML file of the metrics. Not set: a default set of metrics."),
    cfg.MultiStrOpt(
        "output",
        default=[],
        help="Where metric rows go, several at once: KIND:PLACE, for example parquet:/var/lib/metrics.",
    ),
    cfg.StrOpt("window", default="1m", help="The width of a window of time: 30s, 1m, 1h or 1d."),
    cfg.StrOpt(
        "checkpoint_dir",
        help="The directory where a job keeps which offsets it has counted.",
    ),
]


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """List the options for oslo-config-generator."""
    return [(GROUP, OPTS)]
