"""The options of the Spark sinks, group ``[spark_sinks]``. Imports no pyspark."""

from dataclasses import dataclass, field

from oslo_config import cfg

from notifier_kafka.config import reading
from spark_sinks.outputs import secret_masking

GROUP = "spark_sinks"

OPTS = [
    cfg.StrOpt("master", default="local[*]", help="The Spark master that runs the job."),
    cfg.StrOpt(
        "memory", default="1g", help="Memory of Spark's driver. With a local master it does all the work."
    ),
    cfg.IntOpt(
        "shuffle_partitions",
        min=1,
        help="Number of tasks of a grouping. Not set: the number of this machine's processors.",
    ),
    cfg.StrOpt("java", help="The Java to use: a program or a JAVA_HOME. Not set: the first suitable one."),
    reading.PartlySecretOpt(
        "spark_properties",
        secret_masking.properties,
        default=[],
        help="Other properties of Spark, one or several in a line: "
        "spark.executor.memory:4g,spark.eventLog.enabled:true. A comma belongs to the value unless a "
        "name that begins with spark. follows it.",
    ),
    cfg.StrOpt("metrics_file", help="The YAML file that declares the metrics. Not set: a built-in set."),
    reading.PartlySecretOpt(
        "output",
        secret_masking.output,
        default=[],
        help="Where metric rows go, as KIND:PLACE, for example parquet:/var/lib/metrics. May be repeated.",
    ),
    cfg.StrOpt("window", default="1m", help="The width of the windows: 30s, 1m, 1h or 1d."),
    cfg.StrOpt(
        "checkpoint_dir",
        sample_default="_job in the first output that is a directory",
        help="The directory of the job's state: which offsets it has counted, and their figures.",
    ),
    cfg.StrOpt(
        "start",
        default="earliest",
        choices=[
            ("earliest", "with the oldest records"),
            ("latest", "with the records that come after the first run"),
        ],
        help="Where a job begins that has counted nothing yet.",
    ),
    cfg.IntOpt("batch_records", default=2_000_000, min=1, help="The largest number of records in a batch."),
    cfg.FloatOpt(
        "deduplicate",
        default=3600.0,
        min=0,
        help="Deduplicate: records with the same message id count once when they were recorded at most this "
        "many seconds apart. 0 counts every record.",
    ),
    cfg.IntOpt(
        "clock_behind",
        default=30 * 86_400,
        min=0,
        help="Seconds that an event may be older than its record. When it is older, the time of its record "
        "is used.",
    ),
    cfg.IntOpt(
        "clock_ahead",
        default=3_600,
        min=0,
        help="Seconds that an event may be newer than its record, because of a wrong clock. When it is "
        "newer, the time of its record is used.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """The values of the options, by their names."""

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
