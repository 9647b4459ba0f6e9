"""The options of the SQLite driver."""

from dataclasses import dataclass

from oslo_config import cfg

GROUP = "drivers_sqlite"

OPTS = [
    cfg.IntOpt(
        "partitions",
        default=4,
        min=1,
        max=1024,
        help="Partitions of a topic that is made on first use. A group shares a topic among at "
        "most as many members.",
    ),
    cfg.StrOpt(
        "synchronous",
        default="full",
        choices=["full", "normal"],
        help="What is durable when a record is acknowledged: full survives a power cut, normal "
        "the end of every process but not that.",
    ),
    cfg.FloatOpt(
        "session_timeout",
        default=10.0,
        min=0.1,
        help="Seconds after which the partitions of a member that died go to another.",
    ),
    cfg.FloatOpt(
        "retention_seconds",
        default=0.0,
        min=0,
        help="Age in seconds at which records are deleted, read or not; 0 keeps them. It is done while "
        "somebody publishes or listens.",
    ),
    cfg.IntOpt(
        "retention_bytes",
        default=0,
        min=0,
        help="Bytes that the file may use before its oldest records are deleted, read or not; "
        "0 keeps them. The file keeps its size on disk and uses it again.",
    ),
    cfg.FloatOpt(
        "linger",
        default=0.0,
        min=0,
        max=1,
        help="Seconds that a publisher waits for more to write with the first; its calls cost less.",
    ),
    cfg.FloatOpt(
        "busy_timeout",
        default=30.0,
        min=0,
        help="Seconds that a call waits for its turn to write before it reports the log as locked.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SqliteSettings:
    """The options' values; a field is an option, by its name."""

    partitions: int
    synchronous: str
    session_timeout: float
    retention_seconds: float
    retention_bytes: int
    linger: float
    busy_timeout: float


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """List the driver's options for oslo-config-generator."""
    return [(GROUP, OPTS)]
