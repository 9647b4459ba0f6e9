"""The logging handlers, the channel log, routing, the middleware and the fixture."""

import json
import logging
import pathlib
import tempfile
from typing import Any

from tests.compat import compat_kit as kit

om = kit.oslo_messaging


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def run() -> Any:
    return {
        "log": log_lines(),
        "handler": handler_payloads(),
        "error handler": error_payloads(),
        "routing": routing_decisions(),
        "middleware": middleware_payloads(),
        "fixture": fixture_values(),
    }


def log_lines() -> Any:
    lines = Lines()
    logger = logging.getLogger("oslo.messaging.notification")
    logger.addHandler(lines)
    logger.setLevel(logging.DEBUG)
    conf = kit.make_conf(driver=["log"])
    transport = kit.make_transport(conf)
    notifier = om.Notifier(transport, "host1")
    for name in ("debug", "info", "warn", "error", "critical"):
        notifier_method = getattr(notifier, name)
        notifier_method({}, f"event.{name}", {"a": 1, "é": "ü"})
    notifier.info(
        {},
        "secrets",
        {
            "password": "s3cret",
            "nested": {"auth_token": "s3cret", "user": "me"},
            "list": [{"adminPass": "s3cret"}, "plain"],
            "secret_uuid": 5,
        },
    )
    transport.cleanup()
    logger.removeHandler(lines)
    found = []
    for record in lines.records:
        message = json.loads(record.getMessage())
        assert message.pop("message_id")
        assert message.pop("timestamp")
        found.append([record.name, record.levelname, message])
    return found


def handler_payloads() -> Any:
    conf = kit.make_conf(driver=["test"])
    made = type("Own", (om.LoggingNotificationHandler,), {"CONF": conf})(kit.URL, "host1", driver="test")
    logger = logging.getLogger("service")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(made)
    logging.addLevelName(21, "AUDIT")
    logging.addLevelName(15, "SPAM")
    for level in (logging.DEBUG, 15, logging.INFO, 21, logging.WARNING, logging.ERROR, logging.CRITICAL):
        logger.log(level, "text %s", level, extra={"extra": {"id": level}})
    logger.removeHandler(made)
    found = []
    for context, message, priority, retry in kit.recorded():
        payload = message["payload"]
        kinds = {name: type(payload.pop(name)).__name__ for name in ("thread", "process", "lineno")}
        assert payload.pop("pathname").endswith("case_outputs.py")
        found.append(
            [context, message["event_type"], message["publisher_id"], priority, retry, payload, kinds]
        )
    return found


def error_payloads() -> Any:
    global_conf = kit.part("oslo_config.cfg:CONF", "oslo_config.cfg:CONF")
    global_conf([], project="compat", default_config_files=[])
    kit.make_transport(global_conf).cleanup()
    global_conf.set_override("transport_url", kit.URL)
    found = []
    for drivers in (["test"], ["test", "log"]):
        global_conf.set_override("driver", drivers, group="oslo_messaging_notifications")
        om.LoggingErrorNotificationHandler().emit(
            logging.LogRecord("service", logging.WARNING, __file__, 1, "text %s", (5,), None)
        )
        found.append(
            [
                [context, message["event_type"], message["publisher_id"], priority, message["payload"]]
                for context, message, priority, _ in kit.recorded()
            ]
        )
    global_conf.clear_override("transport_url")
    global_conf.clear_override("driver", group="oslo_messaging_notifications")
    return found


ROUTES = """
group_1:
  messaging: {accepted_events: [compute.*, "*.end"], accepted_priorities: [info, WARN]}
  log: {accepted_priorities: [error]}
group_2:
  log: {accepted_events: ["network.?ort.create"]}
  noop: {}
group_3:
  test: {accepted_events: []}
"""
EVENTS = ["compute.create", "network.port.create", "network.sport.create", "image.end", "Compute.create", ""]
PRIORITIES = ["INFO", "WARN", "ERROR", "DEBUG"]


def routing_decisions() -> Any:
    decide = our_decisions if kit.OURS else their_decisions
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "routing.yaml"
        path.write_text(ROUTES)
        return decide(path)


def our_decisions(path: pathlib.Path) -> Any:
    read_routes = kit.part("", "notifier_kafka.publishing.channels.routing:read_routes")
    make = kit.part("", "notifier_kafka.notification:Notification")
    found = {}
    for event in EVENTS:
        for priority in PRIORITIES:
            sent = make("m", "host1", event, priority, {}, "2026-01-01 00:00:00", {})
            accepted = {route.channel for route in read_routes(str(path)) if route.accepts(sent)}
            found[f"{event} {priority}"] = sorted(accepted)
    return found


def their_decisions(path: pathlib.Path) -> Any:
    # None of its own channels loads through it, so the decision is asked for alone.
    yaml = kit.part("yaml", "")
    driver = kit.part("oslo_messaging.notify._impl_routing:RoutingDriver", "")(None, [], None)
    groups = yaml.safe_load(path.read_text())
    found = {}
    for event in EVENTS:
        for priority in PRIORITIES:
            accepted: set[str] = set()
            for group in groups.values():
                accepted.update(driver._get_drivers_for_message(group, event, priority.lower()))
            found[f"{event} {priority}"] = sorted(accepted)
    return found


def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    if environ["PATH_INFO"] == "/fail":
        raise ValueError("failed")
    start_response("202 Accepted", [("Content-Type", "text/plain"), ("X-One", "1")])
    return [b"body"]


def middleware_payloads() -> Any:
    global_conf = kit.part("oslo_config.cfg:CONF", "oslo_config.cfg:CONF")
    global_conf([], project="compat", default_config_files=[])
    kit.make_transport(global_conf).cleanup()
    global_conf.set_override("driver", ["test"], group="oslo_messaging_notifications")
    kind = kit.part(
        "oslo_messaging.notify.middleware:RequestNotifier", "notifier_kafka.integrations.wsgi:RequestNotifier"
    )
    settings = {"url": kit.URL, "publisher_id": "api", "ignore_req_list": "DELETE, head"}
    app = kind.factory({"unused": "x"}, service_name="compute", **settings)(application)
    answers = []
    for method, path in (("GET", "/a"), ("HEAD", "/a"), ("POST", "/fail"), ("DELETE", "/a")):
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "SCRIPT_NAME": "",
            "QUERY_STRING": "limit=5",
            "SERVER_NAME": "api",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "api.example",
            "HTTP_X_AUTH_TOKEN": "s3cret",
            "HTTP_USER_AGENT": "test",
            "wsgi.url_scheme": "http",
            "wsgi.input": None,
            "wsgi.errors": None,
        }
        started: list[Any] = []

        def start_response(status: str, headers: Any, exc_info: Any = None) -> None:
            started.append([status, sorted(map(list, headers))])  # noqa: B023 - all three are called in this turn

        answer = kit.outcome(lambda: b"".join(app(environ, start_response)).decode())  # noqa: B023
        answers.append([answer, started])
    sent = []
    for context, message, priority, _ in kit.recorded():
        payload = json.loads(json.dumps(message["payload"], default=dict))
        if "exception" in payload:
            assert payload["exception"].pop("traceback")
        sent.append([context, message["event_type"], message["publisher_id"], priority, payload])
    return {"answers": answers, "sent": sent}


def fixture_values() -> Any:
    conf = kit.make_conf()
    fixture = kit.part("oslo_messaging.conffixture:ConfFixture", "notifier_kafka.conffixture:ConfFixture")(
        conf, transport_url=kit.URL
    )
    found: list[Any] = [conf.transport_url == kit.URL]
    with fixture:
        fixture.transport_url = "kafka://host/"
        conf.set_override("notification_driver", ["log"])
        conf.set_override("notification_topics", ["a"])
        conf.set_override("notification_transport_url", "kafka://other/")
        group = conf.oslo_messaging_notifications
        found += [fixture.transport_url, group.driver, group.topics, group.transport_url]
        conf.clear_override("notification_driver")
        found += [group.driver, fixture.getDetails()]
    found += [conf.transport_url, conf.oslo_messaging_notifications.topics]
    return found
