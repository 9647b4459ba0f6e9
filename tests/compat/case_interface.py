"""Names, signatures and error classes."""

import inspect
from typing import Any

from tests.compat import compat_kit as kit

# Everything public of oslo.messaging that is not RPC's; compared with its own list below.
NAMES = [
    *("JsonPayloadSerializer", "LoggingErrorNotificationHandler", "LoggingNotificationHandler"),
    *("NoOpSerializer", "NotificationFilter", "NotificationResult", "Notifier", "PublishErrorsHandler"),
    *("Serializer", "Target", "TransportHost", "TransportURL", "get_batch_notification_listener"),
    *("get_notification_listener", "get_notification_transport", "set_transport_defaults"),
]
ERRORS = [
    *("MessagingException", "MessagingTimeout", "MessageDeliveryFailure", "InvalidTarget"),
    *("DriverLoadFailure", "InvalidTransportURL", "MessagingServerError", "ExecutorLoadFailure"),
    "ServerListenError",
]
METHODS = {
    "Notifier": [
        *("audit", "debug", "info", "warn", "warning", "error", "critical", "sample"),
        *("prepare", "is_enabled"),
    ],
    "NotificationFilter": ["match"],
    "TransportURL": ["parse"],
    "NoOpSerializer": [
        *("serialize_entity", "deserialize_entity", "serialize_context", "deserialize_context")
    ],
    "JsonPayloadSerializer": ["serialize_entity"],
}

PLACES = {
    "dispatcher": ["NotificationResult"],
    "filter": ["NotificationFilter"],
    "listener": ["get_batch_notification_listener", "get_notification_listener"],
    "log_handler": ["LoggingErrorNotificationHandler", "PublishErrorsHandler"],
    "logger": ["LoggingNotificationHandler"],
    "middleware": ["RequestNotifier"],
    "notifier": ["Notifier", "get_notification_transport"],
}


def run() -> Any:
    om = kit.oslo_messaging
    things: dict[str, Any] = {name: getattr(om, name, None) for name in [*NAMES, *ERRORS]}
    things["RequestNotifier"] = kit.part(
        "oslo_messaging.notify.middleware:RequestNotifier", "notifier_kafka.integrations.wsgi:RequestNotifier"
    )
    things["ConfFixture"] = kit.part(
        "oslo_messaging.conffixture:ConfFixture", "notifier_kafka.conffixture:ConfFixture"
    )
    conf = kit.make_conf()
    transport = kit.make_transport(conf)
    listener = om.get_notification_listener(transport, [om.Target(topic="a")], [object()])
    batch = om.get_batch_notification_listener(transport, [om.Target(topic="a")], [object()])
    signatures = {name: parameters(thing) for name, thing in things.items() if name not in ERRORS}
    for owner, names in METHODS.items():
        for name in names:
            signatures[f"{owner}.{name}"] = parameters(getattr(things[owner], name))
    for name in ("start", "stop", "wait", "reset"):
        signatures[f"listener.{name}"] = parameters(getattr(listener, name))
        signatures[f"batch.{name}"] = parameters(getattr(batch, name))
    signatures["RequestNotifier.factory"] = parameters(things["RequestNotifier"].factory)
    bases: dict[str, type] = {name: things[name] for name in ERRORS}
    bases |= {"Exception": Exception, "ValueError": ValueError}
    transport.cleanup()
    return {
        "missing": [name for name, thing in things.items() if thing is None],
        "public": sorted(
            name for name in dir(om) if name[0] != "_" and not inspect.ismodule(getattr(om, name))
        ),
        "expected": sorted([*NAMES, *ERRORS]),
        "places": [
            f"{place}.{name} is there: {getattr(getattr(om.notify, place, None), name, None) is not None}"
            for place, names in PLACES.items()
            for name in names
        ],
        "signatures": signatures,
        "is_a": [f"{a} is a {b}" for a in ERRORS for b in bases if issubclass(things[a], bases[b])],
        "attributes": {
            "InvalidTarget": things["InvalidTarget"]("text", "target").target,
            "DriverLoadFailure": vars_of(things["DriverLoadFailure"]("name", "why")),
            "InvalidTransportURL": vars_of(things["InvalidTransportURL"]("url", "why")),
            "ExecutorLoadFailure": vars_of(things["ExecutorLoadFailure"]("name", "why")),
            "ServerListenError": vars_of(things["ServerListenError"]("target", "why")),
        },
        "results": [om.NotificationResult.HANDLED, om.NotificationResult.REQUEUE],
        "alias": om.PublishErrorsHandler is om.LoggingErrorNotificationHandler,
        "context_manager": [hasattr(listener, "__enter__"), hasattr(batch, "__exit__")],
        "abstract": sorted(om.Serializer.__abstractmethods__),
    }


def vars_of(error: Exception) -> dict[str, Any]:
    return {name: str(value) for name, value in vars(error).items() if name != "msg"}


def parameters(thing: Any) -> list[list[str]]:
    if inspect.isclass(thing) and thing.__init__ is object.__init__:
        return []
    found = inspect.signature(thing).parameters.values()
    return [
        [one.name, one.kind.name, "required" if one.default is one.empty else shown(one.default)]
        for one in found
    ]


def shown(default: Any) -> str:
    # The marker of an argument that was not given: theirs has no text of its own, ours says what it means.
    return "marker" if type(default) is object or repr(default) == "<unchanged>" else repr(default)
