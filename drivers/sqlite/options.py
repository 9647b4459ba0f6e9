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
        help="Partitions of a topic that is created on first use. At most so many members of a group "
        "share a topic.",
    ),
    cfg.StrOpt(
        "synchronous",
        default="full",
        choices=["full", "normal"],
        help="How durable an acknowledged record is: with full it survives a power cut, with normal "
        "the end of every process, but not a power cut.",
    ),
    cfg.FloatOpt(
        "session_timeout",
        default=10.0,
        min=0.1,
        help="Seconds after which the partitions of a dead member go to another member.",
    ),
    cfg.FloatOpt(
        "retention_seconds",
        default=0.0,
        min=0,
        help="Age in seconds at which records are deleted, whether read or not; 0 keeps them. They are "
        "deleted while a process publishes or listens.",
    ),
    cfg.IntOpt(
        "retention_bytes",
        default=0,
        min=0,
        help="Bytes that the file may use before its oldest records are deleted, whether read or not; "
        "0 keeps them. The file does not shrink; it uses the freed space again.",
    ),
    cfg.FloatOpt(
        "linger",
        default=0.0,
        min=0,
        max=1,
        help="Seconds that a publisher waits for more records to write in one batch. Batches cost less CPU.",
    ),
    cfg.FloatOpt(
        "busy_timeout",
        default=30.0,
        min=0,
        help="Seconds that a call waits for the write lock before it reports that the log is locked.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SqliteSettings:
    """The values of the options; each field has the name of its option."""

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
