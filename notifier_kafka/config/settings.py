"""The values of the framework's option groups, typed. Each field has the name of its option."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class NotificationSettings:
    """The values of ``[notifications]``."""

    driver: list[str]
    transport_url: str | None = field(repr=False)
    topics: list[str]
    retry: int
    key: str
    envelope: bool
    cloudevents_mode: Literal["binary", "structured"]
    routing_config: str
    on_full: Literal["spool", "block", "drop_newest", "drop_oldest", "raise"] | None
    spool_dir: str | None
    spool_after: float
    spool_bytes: int
    spool_age: float
    block_timeout: float
    outbox_records: int
    outbox_bytes: int
    wait_timeout: float
    exit_timeout: float


@dataclass(frozen=True, kw_only=True)
class ListenerSettings:
    """The values of ``[listener]``."""

    group: str | None
    start: Literal["earliest", "latest"]
    batch_size: int
    requeue_delay: float
    requeue_delay_max: float
    max_attempts: int
    delivery: Literal["at-least-once", "at-most-once"]
    workers: int
    ordered: bool
    dedupe_window: int
