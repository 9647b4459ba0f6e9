"""A service written for oslo.messaging, using notifications only. It must run unchanged."""

import threading
from typing import Any

import oslo_messaging  # type: ignore[import-not-found]
from oslo_config import cfg


class RequestContext:
    def __init__(self, user: str, token: str) -> None:
        self.user = user
        self.token = token

    def redacted_copy(self) -> "RequestContext":
        return RequestContext(self.user, "")

    def to_dict(self) -> dict[str, str]:
        return {"user": self.user, "token": self.token}


class ContextSerializer(oslo_messaging.NoOpSerializer):  # type: ignore[misc]
    def serialize_context(self, ctxt: Any) -> Any:
        return ctxt if isinstance(ctxt, dict) else ctxt.to_dict()

    def deserialize_context(self, ctxt: dict[str, Any]) -> Any:
        return RequestContext(**ctxt) if ctxt else None


class Instances:
    """Listens to the compute service's instances and refuses each delete once."""

    filter_rule = oslo_messaging.NotificationFilter(
        publisher_id=r"^compute\.", event_type=r"^compute\.instance\."
    )

    def __init__(self) -> None:
        self.heard: list[list[Any]] = []
        self.refused: set[str] = set()
        self.lock = threading.Lock()

    def info(self, ctxt: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> Any:
        with self.lock:
            if event_type.endswith("delete") and payload["id"] not in self.refused:
                self.refused.add(payload["id"])
                return oslo_messaging.NotificationResult.REQUEUE
            context = None if ctxt is None else ctxt.to_dict()
            self.heard.append([publisher_id, event_type, payload, sorted(metadata), context])
        return oslo_messaging.NotificationResult.HANDLED


class Errors:
    def __init__(self) -> None:
        self.heard: list[list[Any]] = []

    def error(self, ctxt: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> None:
        self.heard.append([publisher_id, event_type, payload])


class Service:
    def __init__(self, conf: cfg.ConfigOpts, url: str) -> None:
        oslo_messaging.set_transport_defaults("compute")
        self.transport = oslo_messaging.get_notification_transport(conf, url=url)
        self.notifier = oslo_messaging.Notifier(
            self.transport,
            publisher_id="compute.host1",
            driver="messagingv2",
            topics=["versioned_notifications"],
            serializer=ContextSerializer(),
            retry=2,
        )
        self.instances, self.errors = Instances(), Errors()
        self.server = oslo_messaging.get_notification_listener(
            self.transport,
            [oslo_messaging.Target(topic="versioned_notifications")],
            [self.instances, self.errors],
            executor="threading",
            serializer=ContextSerializer(),
            allow_requeue=True,
            pool="compat-service",
        )

    def work(self) -> None:
        ctxt = RequestContext("me", "s3cret")
        for number in range(3):
            self.notifier.info(ctxt, "compute.instance.create", {"id": f"i-{number}"})
        self.notifier.info(ctxt, "compute.instance.delete", {"id": "i-1"})
        self.notifier.info(ctxt, "network.port.create", {"id": "p-1"})
        self.notifier.debug(ctxt, "compute.instance.debug", {"id": "i-0"})
        other = self.notifier.prepare(publisher_id="network.host2")
        other.info(ctxt, "compute.instance.create", {"id": "i-9"})
        if self.notifier.is_enabled():
            other.error({}, "network.failed", {"reason": "cable", "codes": [1, 2.5, None, True]})
