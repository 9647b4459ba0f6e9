"""What a notifier hands to its channels."""

import re
import uuid
from typing import Any

from tests.compat import compat_kit as kit

TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{6})?$")


class Redacting:
    """As oslo.context's RequestContext: safe to send after redaction."""

    def redacted_copy(self) -> dict[str, str]:
        return {"user": "me"}


class Plain:
    token = "s3cret"


class SubDict(dict[str, Any]):
    pass


class Wrapping(kit.oslo_messaging.NoOpSerializer):  # type: ignore[misc]
    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        return {"wrapped": entity, "context_seen": type(ctxt).__name__}

    def serialize_context(self, ctxt: Any) -> Any:
        return {"serialized": ctxt}


def run() -> Any:
    om = kit.oslo_messaging
    conf = kit.make_conf(driver=["test"], retry=7)
    transport = kit.make_transport(conf)
    results: dict[str, Any] = {}

    notifier = om.Notifier(transport, "host1")
    for name in ("audit", "debug", "info", "warn", "warning", "error", "critical", "sample"):
        results[f"returns of {name}"] = getattr(notifier, name)({}, f"event.{name}", {"a": [1, None]})
    results["priorities"] = take()

    contexts = [None, {}, {"token": "s3cret"}, Redacting(), Plain(), SubDict(token="s3cret"), "text", 5]
    for context in contexts:
        notifier.info(context, type(context).__name__, None)
    results["contexts"] = take()

    om.Notifier(transport, serializer=Wrapping()).info(Redacting(), "event", 5)
    om.Notifier(transport, serializer=Wrapping()).info({"token": "s3cret"}, "event", 5)
    results["serializer"] = take()

    payloads: list[Any] = [None, 5, "text", [], {"nested": {"list": [1, {"a": True}]}}]
    for payload in payloads:
        notifier.info({}, "event", payload)
    results["payloads"] = take()

    variants = [
        om.Notifier(transport, retry=3),
        om.Notifier(transport, retry=-1),
        notifier.prepare(),
        notifier.prepare(publisher_id="host2"),
        notifier.prepare(retry=5),
        notifier.prepare("host3", 6),
        notifier.prepare(publisher_id="host4").prepare(retry=8),
    ]
    for variant in variants:
        variant.info({}, "event", {})
    results["prepared"] = take()

    om.Notifier(transport, driver="test").info({}, "event", {})
    om.Notifier(transport, driver="noop").info({}, "event", {})
    results["driver argument"] = take()

    results["enabled"] = {}
    for drivers in (["noop"], ["test"], ["noop", "test"], ["log"]):
        conf.set_override("driver", drivers, group="oslo_messaging_notifications")
        results["enabled"][",".join(drivers)] = om.Notifier(transport).is_enabled()
        results["enabled"][f"prepared {drivers}"] = om.Notifier(transport).prepare(retry=1).is_enabled()
    conf.set_override("driver", [], group="oslo_messaging_notifications")
    results["enabled without a driver"] = om.Notifier(transport).is_enabled()
    results["enabled by argument"] = [
        om.Notifier(transport, driver=name).is_enabled() for name in ("noop", "test")
    ]
    results["attributes"] = [notifier.publisher_id, notifier.retry, notifier.transport is transport]
    transport.cleanup()

    om.set_transport_defaults(control_exchange="mine")
    results["control_exchange"] = kit.make_conf().control_exchange
    return results


def take() -> list[Any]:
    """Return what was recorded, with what differs by nature checked and replaced."""
    taken = []
    for context, message, priority, retry in kit.recorded():
        plain = dict(message)
        plain["message_id"] = f"uuid{uuid.UUID(plain['message_id']).version}"
        plain["timestamp"] = TIMESTAMP.match(plain["timestamp"]) is not None
        taken.append([context, plain, list(message), priority, retry])
    return taken
