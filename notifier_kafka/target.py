"""Where a listener listens: oslo.messaging's Target."""

from typing import Any

_FIELDS = ("exchange", "topic", "namespace", "version", "server", "fanout")


class Target:
    """Names a topic. For notifications only ``topic`` has a meaning.

    The other attributes are kept for code written for oslo.messaging. The logs of this package
    have no exchanges.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the signature is oslo.messaging's
        self,
        exchange: str | None = None,
        topic: str | None = None,
        namespace: str | None = None,
        version: str | None = None,
        server: str | None = None,
        fanout: bool | None = None,  # noqa: FBT001
        legacy_namespaces: list[str] | None = None,
    ) -> None:
        self.exchange = exchange
        self.topic = topic
        self.namespace = namespace
        self.version = version
        self.server = server
        self.fanout = fanout
        self.accepted_namespaces = [namespace, *(legacy_namespaces or [])]

    def __call__(self, **kwargs: Any) -> "Target":
        """Return a copy with some attributes replaced."""
        return Target(**{name: getattr(self, name) for name in _FIELDS} | kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in _FIELDS))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in _FIELDS if getattr(self, name))
        return f"<Target {shown}>"
