"""What saboteurs are made of: a driver that passes everything on."""

from collections.abc import Sequence
from typing import Any, ClassVar

from notifier_kafka.driver import Limits, OnFailure, Publisher, Start, Subscription
from notifier_kafka_drivers.sqlite.driver import SqliteDriver


class Wrapped:
    """A publisher or subscription that goes on to another in all that it does not spoil."""

    def __init__(self, inner: Any, driver: "Saboteur") -> None:
        self.inner = inner
        self.driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Saboteur(SqliteDriver):
    clause: ClassVar[int]
    caught_by: ClassVar[tuple[str, ...]]
    publisher_class: ClassVar[type[Wrapped]] = Wrapped
    subscription_class: ClassVar[type[Wrapped]] = Wrapped
    group: str | None

    def publisher(self, on_failure: OnFailure, limits: Limits) -> Publisher:
        return self.publisher_class(super().publisher(on_failure, limits), self)  # type: ignore[return-value]

    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> Subscription:
        self.group = group
        return self.subscription_class(super().subscribe(topics, group, start), self)  # type: ignore[return-value]


class Honest(Saboteur):
    """Breaks nothing: shows that it is not the wrapping that makes the others fail."""

    clause = 0
    caught_by = ()
