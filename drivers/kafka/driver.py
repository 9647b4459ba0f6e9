"""The Kafka driver: what both client libraries share is here and in the modules beside it."""

import functools
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence

from notifier_kafka.contract import after_fork
from notifier_kafka.contract.driver import (
    Delivery,
    Driver,
    Limits,
    OnFailure,
    Partition,
    Publisher,
    Span,
    Start,
    Subscription,
)
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import ConfigurationError, TransportUnavailable

from . import diagnosis, naming, options, properties
from .admin import KafkaAdmin
from .clients import loading, protocol
from .listening import reading
from .listening.subscription import KafkaSubscription
from .publishing import partitioning
from .publishing.topic_creation import PublisherAwaitingTopics
from .settings import KafkaSettings
from .transaction import KafkaTransaction, Transactors

_FORKED = after_fork.renewed()


class KafkaDriver(Driver):
    """Topics of Apache Kafka brokers."""

    durability = (
        "written by all in-sync replicas (acks = all, the default); how many that are at least "
        "is the topic's min.insync.replicas"
    )

    def __init__(self, url: DriverURL) -> None:
        super().__init__(url)
        self._lock = threading.RLock()
        self._connected: protocol.Admin | None = None
        self._lent: weakref.WeakSet[Publisher | Subscription] = weakref.WeakSet()
        self._closed = False
        self._transactors = Transactors(self._transactor)
        _FORKED.add(self)

    # The next four are made on first use: options are read from files, and a client library is
    # searched for. A notifier uses them when it is made.
    @functools.cached_property
    def _settings(self) -> KafkaSettings:
        return self.url.settings(options.GROUP, options.OPTS, KafkaSettings)

    @functools.cached_property
    def _common(self) -> properties.Properties:
        return properties.common(self.url, self._settings)

    @functools.cached_property
    def _client(self) -> protocol.Client:
        diagnosis.check_files(self._common)
        return loading.load(self._settings.client)(self._common)

    @functools.cached_property
    def _topics(self) -> partitioning.Topics:
        return partitioning.Topics(self.admin().ensure_topic, partitioning.load(self._settings.partitioner))

    @property
    def virtual_host(self) -> str | None:
        return self.url.virtual_host

    @property
    def default_group(self) -> str | None:
        return self._settings.consumer_group or None

    def publisher(self, on_failure: OnFailure, limits: Limits = Limits()) -> Publisher:
        given = properties.publishing(self._settings, limits.retry)

        def make(report: OnFailure, restore: protocol.Restore) -> Publisher:
            return self._client.publisher(given, report, limits, restore)

        self._refuse_closed()
        bounds = self._settings.max_request_size, properties.longest_wait(given)
        publisher = PublisherAwaitingTopics(make, self._topics, on_failure, limits, bounds)
        self._lent.add(publisher)
        return publisher

    def transaction(self, name: str | None = None) -> KafkaTransaction:
        self._refuse_closed()
        if name is not None:
            self._transactors.claim(name)
        largest = self._settings.max_request_size
        return KafkaTransaction(self._transactors, self._topics, self._ends, largest, name)

    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> Subscription:
        for topic in topics:
            complaint = naming.complaint(topic)
            if complaint:
                raise ConfigurationError(complaint)

        # Here, so that a missing client library is an error of this call and not of the thread.
        library = self._client

        def join(name: str, start_offsets: protocol.StartOffsets | None) -> protocol.Consumer:
            given = properties.listening(self._settings, name)
            return library.consumer(given, topics, start_offsets)

        def offsets(moment: float | None, parts: Sequence[Partition]) -> dict[Partition, int]:
            return self._offsets(topics, moment, parts)

        self._refuse_closed()
        member = KafkaSubscription(join, offsets, group, start, self._settings.poll_interval)
        self._lent.add(member)
        return member

    def spans(
        self, topics: Sequence[str], since: float | None = None, until: float | None = None
    ) -> list[Span]:
        admin = self._admin()
        return reading.spans(admin, reading.existing(admin, topics), since, until)

    def read(self, span: Span) -> Iterator[Delivery]:
        span = reading.within(self._admin(), span)
        # All records of the span exist: a broker has nothing to wait for.
        given = {"fetch.max.wait.ms": "10", **properties.reading(self._settings)}
        return reading.deliveries(lambda cut: self._client.reader(given, cut.partition, cut.start), span)

    def admin(self) -> KafkaAdmin:
        return KafkaAdmin(self._admin, self._settings)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            admin, self._connected = self._connected, None
        for lent in list(self._lent):
            lent.close()
        for lent in list(self._lent):
            if isinstance(lent, PublisherAwaitingTopics):
                lent.await_topic_creator()
        self._transactors.close()
        if admin is not None:
            admin.close()

    def start_afresh(self) -> None:
        """Start from nothing in a child process: connections and their threads are the parent's."""
        self._lock = threading.RLock()
        if self._connected is not None:
            after_fork.never_free(self._connected)
        self._connected = None
        after_fork.never_free(self._transactors)
        self._transactors = Transactors(self._transactor)

    def trouble(self) -> str | None:
        return diagnosis.trouble(self._common)

    def _transactor(self, identity: str) -> protocol.Transactor:
        return self._client.transactor(properties.transacting(self._settings, identity))

    def _admin(self) -> protocol.Admin:
        with self._lock:
            self._refuse_closed()
            if self._connected is None:
                self._connected = self._client.admin()
            return self._connected

    def _ends(self, parts: Iterable[Partition]) -> dict[Partition, int]:
        return reading.ends(self._admin(), parts)

    def _offsets(
        self, topics: Sequence[str], moment: float | None, parts: Sequence[Partition]
    ) -> dict[Partition, int]:
        """Find the offsets of ``parts``, or of all partitions of the topics, at a moment or now."""
        admin = self._admin()
        latest = reading.ends(admin, parts or reading.existing(admin, topics))
        return latest if moment is None else reading.moments(admin, list(latest), moment, latest)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise TransportUnavailable("the Kafka driver is closed: make a new one")
