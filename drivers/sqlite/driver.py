"""The embedded log: topics in one SQLite file, used by many processes at once."""

import contextlib
import functools
import weakref
from collections.abc import Iterator, Sequence

from notifier_kafka.contract.driver import Delivery, Driver, Limits, OnDeleted, OnFailure, Span, Start
from notifier_kafka.contract.outbox import Outbox
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import ConfigurationError, InvalidTransportURL, MessagingException

from . import blocks, catalog, options
from .admin import LogAdmin
from .appender import Appender
from .logfile import LogFile, Settings
from .membership import Terms
from .retention import Bounds, Retention
from .subscription import LogSubscription
from .transaction import LogTransaction

_READ_AT_ONCE = 1_000
_FORMS = (
    "it has no host: write sqlite:///relative.db, sqlite:////absolute.db, or sqlite:// for a private "
    "temporary log"
)


class SqliteDriver(Driver):
    """``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``sqlite://`` for a private one."""

    durability = (
        "Committed to the file and synchronised to the disk: it survives a power cut, "
        "and with synchronous=normal the end of every process but not that."
    )

    def __init__(self, url: DriverURL) -> None:
        super().__init__(url)
        if url.hosts:
            # One slash short: it would pass for the private log, which is deleted at the end.
            raise InvalidTransportURL(url.masked(), _FORMS)
        self._log = LogFile(url.virtual_host, self._file_settings)
        self._outboxes: weakref.WeakSet[Outbox] = weakref.WeakSet()
        self._subscriptions: weakref.WeakSet[LogSubscription] = weakref.WeakSet()
        self._tell_deleted: OnDeleted | None = None

    def publisher(self, on_failure: OnFailure, limits: Limits = Limits()) -> Outbox:
        linger = self._settings.linger
        appender = self._appender()
        outbox = Outbox(
            # Closing must not wait for a turn that may be long in coming.
            lambda records: appender.append(records, lambda: outbox.closed),
            on_failure,
            limits,
            linger=linger,
        )
        self._outboxes.add(outbox)
        return outbox

    def transaction(self, name: str | None = None) -> LogTransaction:  # noqa: ARG002 - all end with their process
        return LogTransaction(self._appender())

    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> LogSubscription:
        if isinstance(start, str) and start not in ("earliest", "latest"):
            raise ConfigurationError(f"start {start!r}: earliest, latest or seconds since the epoch")
        names = list(dict.fromkeys(topics))
        for name in names:
            catalog.check_name(name)
        settings = self._settings
        terms = Terms(group, names, start, settings.session_timeout)
        subscription = LogSubscription(self._log, terms, settings.busy_timeout, self._retention())
        self._subscriptions.add(subscription)
        return subscription

    def spans(
        self, topics: Sequence[str], since: float | None = None, until: float | None = None
    ) -> list[Span]:
        with self._log.reading() as connection:
            heads = catalog.heads(connection, topics)
            spans = []
            for head in [head for topic in dict.fromkeys(topics) for head in heads.get(topic, [])]:
                start = head.first if since is None else catalog.offset_at(connection, head, since)
                stop = head.next if until is None else catalog.offset_at(connection, head, until)
                spans.append(Span(head.partition, start, max(start, stop)))
        return spans

    def read(self, span: Span) -> Iterator[Delivery]:
        reader = blocks.Reader()
        with self._log.reading() as connection:
            head = catalog.head(connection, span.partition, self._log.path)
        start, stop = (blocks.first_id(head.id, offset) for offset in span[1:])
        # A frame at a time: a read transaction held while the caller works would keep the
        # WAL from being emptied.
        while start < stop:
            with self._log.reading() as connection:
                frame = reader.frame(connection, start, stop, _READ_AT_ONCE)
            if not frame:
                return
            yield from blocks.deliveries(frame, span.partition)
            start = blocks.first_id(head.id, frame.stop)

    def admin(self) -> LogAdmin:
        return LogAdmin(self._log, self._partitions)

    def on_deleted(self, tell: OnDeleted) -> None:
        self._tell_deleted = tell

    def close(self) -> None:
        for outbox in list(self._outboxes):
            outbox.close()
        for subscription in list(self._subscriptions):
            # A member that cannot say good-bye is missed when its lease ends.
            with contextlib.suppress(MessagingException):
                subscription.close()
        self._log.close()

    def _appender(self) -> Appender:
        return Appender(self._log, self._partitions, self._retention())

    def _retention(self) -> Retention:
        return Retention(self._log, self._bounds, lambda: self._tell_deleted)

    @functools.cached_property
    def _settings(self) -> options.SqliteSettings:
        return self.url.settings(options.GROUP, options.OPTS, options.SqliteSettings)

    def _file_settings(self) -> Settings:
        return Settings(self._settings.synchronous, self._settings.busy_timeout)

    def _partitions(self) -> int:
        return int(self._settings.partitions)

    def _bounds(self) -> Bounds:
        return Bounds(self._settings.retention_seconds, self._settings.retention_bytes)
