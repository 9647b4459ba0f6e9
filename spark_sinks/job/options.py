"""The options of the Spark sinks, group ``[spark_sinks]``. Imports no pyspark."""

from dataclasses import dataclass, field

from oslo_config import cfg

from notifier_kafka.config import reading
from spark_sinks.outputs import secret_masking

GROUP = "spark_sinks"

OPTS = [
    cfg.StrOpt("master", default="local[*]", help="The Spark master that runs the job."),
    cfg.StrOpt(
        "memory", default="1g", help="Memory of the driver, which does all the work of a local master."
    ),
    cfg.IntOpt(
        "shuffle_partitions",
        min=1,
        help="Tasks that share a grouping. Not set: as many as this machine has processors.",
    ),
    cfg.StrOpt("java", help="The Java to use: a program or a JAVA_HOME. Not set: the first that suits."),
    reading.PartlySecretOpt(
        "spark_properties",
        secret_masking.properties,
        default=[],
        help="Anything else of Spark's configuration, one line for each property or several in one: "
        "spark.executor.memory:4g,spark.eventLog.enabled:true. A comma belongs to the value unless a "
        "name that begins with spark. follows.",
    ),
    cfg.StrOpt("metrics_file", help="The YAML file of the metrics. Not set: a default set of metrics."),
    reading.PartlySecretOpt(
        "output",
        secret_masking.output,
        default=[],
        help="Where metric rows go, several at once: KIND:PLACE, for example parquet:/var/lib/metrics.",
    ),
    cfg.StrOpt("window", default="1m", help="The width of a window of time: 30s, 1m, 1h or 1d."),
    cfg.StrOpt(
        "checkpoint_dir",
        sample_default="_job in the first output that is a directory",
        help="The directory where a job keeps which offsets it has counted.",
    ),
    cfg.StrOpt(
        "start",
        default="earliest",
        choices=["earliest", "latest"],
        help="Where a job that has counted nothing begins.",
    ),
    cfg.IntOpt("batch_records", default=2_000_000, min=1, help="Records of a batch at most."),
    cfg.FloatOpt(
        "deduplicate",
        default=3600.0,
        min=0,
        help="Seconds for which a message id is remembered: a notification that was recorded "
        "twice within them counts once. 0 counts every record.",
    ),
    cfg.IntOpt(
        "clock_behind",
        default=30 * 86_400,
        min=0,
        help="Seconds that an event may be older than its record. The time of one that is "
        "older is that of its record.",
    ),
    cfg.IntOpt(
        "clock_ahead",
        default=3_600,
        min=0,
        help="Seconds that an event may be newer than its record, by a clock that is wrong.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """The options' values; a field is an option, by its name."""

    master: str
    memory: str
    shuffle_partitions: int | None
    java: str | None
    spark_properties: dict[str, str] = field(repr=False)
    metrics_file: str | None
    output: list[str] = field(repr=False)
    window: str
    checkpoint_dir: str | None
    start: str
    batch_records: int
    deduplicate: float
    clock_behind: int
    clock_ahead: int


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """List the options for oslo-config-generator."""
    return [(GROUP, OPTS)]
