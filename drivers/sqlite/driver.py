"""The embedded log: topics in one SQLite file, which many processes use at once."""

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
from .logfile import FileSettings, LogFile
from .membership import MemberSettings
from .retention import Retention, RetentionLimits
from .subscription import LogSubscription
from .transaction import LogTransaction

_READ_RECORDS = 1_000
_URL_FORMS = (
    "SQLite takes no host: write sqlite:///relative.db, sqlite:////absolute.db, or sqlite:// for a private "
    "temporary log"
)


class SqliteDriver(Driver):
    """``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``sqlite://`` for a private one."""

    durability = (
        "Committed to the file and synchronised to the disk: it survives a power cut. With "
        "synchronous=normal it survives the end of every process, but not a power cut."
    )

    def __init__(self, url: DriverURL) -> None:
        super().__init__(url)
        if url.hosts:
            # A slash is missing. Without the host it would be a private log, which is deleted at the end.
            raise InvalidTransportURL(url.masked(), _URL_FORMS)
        self._log = LogFile(url.virtual_host, self._file_settings)
        self._outboxes: weakref.WeakSet[Outbox] = weakref.WeakSet()
        self._subscriptions: weakref.WeakSet[LogSubscription] = weakref.WeakSet()
        self._tell_deleted: OnDeleted | None = None

    def publisher(self, on_failure: OnFailure, limits: Limits = Limits()) -> Outbox:
        linger = self._settings.linger
        appender = self._appender()
        outbox = Outbox(
            # Closing must not wait for the lock, which other processes may hold for long.
            lambda records: appender.append(records, lambda: outbox.closed),
            on_failure,
            limits,
            linger=linger,
        )
        self._outboxes.add(outbox)
        return outbox

    def transaction(self, name: str | None = None) -> LogTransaction:  # noqa: ARG002 - a transaction ends with its process
        return LogTransaction(self._appender())

    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> LogSubscription:
        if isinstance(start, str) and start not in ("earliest", "latest"):
            raise ConfigurationError(f"start {start!r}: earliest, latest or seconds since the epoch")
        names = list(dict.fromkeys(topics))
        for name in names:
            catalog.check_name(name)
        settings = self._settings
        member = MemberSettings(group, names, start, settings.session_timeout)
        subscription = LogSubscription(self._log, member, settings.busy_timeout, self._retention())
        self._subscriptions.add(subscription)
        return subscription

    def spans(
        self, topics: Sequence[str], since: float | None = None, until: float | None = None
    ) -> list[Span]:
        with self._log.reading() as connection:
            states = catalog.states(connection, topics)
            spans = []
            for state in [state for topic in dict.fromkeys(topics) for state in states.get(topic, [])]:
                start = state.first if since is None else catalog.offset_at(connection, state, since)
                stop = state.next if until is None else catalog.offset_at(connection, state, until)
                spans.append(Span(state.partition, start, max(start, stop)))
        return spans

    def read(self, span: Span) -> Iterator[Delivery]:
        reader = blocks.Reader()
        with self._log.reading() as connection:
            state = catalog.state(connection, span.partition, self._log.path)
        start, stop = (blocks.first_id(state.id, offset) for offset in span[1:])
        # One frame at a time: a read transaction that stays open while the caller works would
        # prevent checkpoints of the WAL.
        while start < stop:
            with self._log.reading() as connection:
                frame = reader.frame(connection, start, stop, _READ_RECORDS)
            if not frame:
                return
            yield from blocks.deliveries(frame, span.partition)
            start = blocks.first_id(state.id, frame.stop)

    def admin(self) -> LogAdmin:
        return LogAdmin(self._log, self._partitions)

    def on_deleted(self, tell: OnDeleted) -> None:
        self._tell_deleted = tell

    def close(self) -> None:
        for outbox in list(self._outboxes):
            outbox.close()
        for subscription in list(self._subscriptions):
            # The other members notice a member that cannot leave when its lease ends.
            with contextlib.suppress(MessagingException):
                subscription.close()
        self._log.close()

    def _appender(self) -> Appender:
        return Appender(self._log, self._partitions, self._retention())

    def _retention(self) -> Retention:
        return Retention(self._log, self._limits, lambda: self._tell_deleted)

    @functools.cached_property
    def _settings(self) -> options.SqliteSettings:
        return self.url.settings(options.GROUP, options.OPTS, options.SqliteSettings)

    def _file_settings(self) -> FileSettings:
        return FileSettings(self._settings.synchronous, self._settings.busy_timeout)

    def _partitions(self) -> int:
        return int(self._settings.partitions)

    def _limits(self) -> RetentionLimits:
        return RetentionLimits(self._settings.retention_seconds, self._settings.retention_bytes)
