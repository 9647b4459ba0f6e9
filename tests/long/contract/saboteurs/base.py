"""The base of saboteurs: a driver that passes every call on to the SQLite driver."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from notifier_kafka.contract.driver import (
    Admin,
    Delivery,
    Driver,
    Limits,
    OnFailure,
    Publisher,
    Span,
    Start,
    Subscription,
    Transaction,
)
from notifier_kafka.url import TransportURL

# Imported by name: to the type checker the package is "drivers".
HONEST: Callable[[TransportURL], Driver] = importlib.import_module(
    "notifier_kafka_drivers.sqlite.driver"
).SqliteDriver


class Wrapped:
    """A publisher, subscription or admin that passes on what it does not override."""

    def __init__(self, inner: Any, driver: "Saboteur") -> None:
        self.inner = inner
        self.driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Saboteur(Driver):
    durability = "that of the driver inside, or less"
    clause: ClassVar[int]
    caught_by: ClassVar[tuple[str, ...]]
    publisher_class: ClassVar[type[Wrapped]] = Wrapped
    subscription_class: ClassVar[type[Wrapped]] = Wrapped
    transaction_class: ClassVar[type[Wrapped]] = Wrapped
    group: str | None

    def __init__(self, url: TransportURL) -> None:
        super().__init__(url)
        self.inner = HONEST(url)

    def publisher(self, on_failure: OnFailure, limits: Limits = Limits()) -> Publisher:
        return self.publisher_class(self.inner.publisher(on_failure, limits), self)

    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> Subscription:
        self.group = group
        return self.subscription_class(self.inner.subscribe(topics, group, start), self)

    def transaction(self, name: str | None = None) -> Transaction:
        return self.transaction_class(self.inner.transaction(name), self)

    def spans(
        self, topics: Sequence[str], since: float | None = None, until: float | None = None
    ) -> list[Span]:
        return self.inner.spans(topics, since, until)

    def read(self, span: Span) -> Iterator[Delivery]:
        return self.inner.read(span)

    def admin(self) -> Admin:
        return self.inner.admin()

    def close(self) -> None:
        self.inner.close()


class Honest(Saboteur):
    """Breaks nothing, to show that the wrapping alone makes no test fail."""

    clause = 0
    caught_by = ()
