import logging
import logging.config
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.integrations import logging_handlers
from notifier_kafka.publishing.channels import test
from notifier_kafka.wire.serializer import NoOpSerializer


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    options.register(conf)
    conf.set_override("transport_url", "sqlite://")
    return conf


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """Give a logger whose records reach the handlers of the root logger; restore it afterwards."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    root.setLevel(logging.DEBUG)
    test.reset()
    yield logging.getLogger("service.module")
    test.reset()
    root.setLevel(level)
    for added in [handler for handler in root.handlers if handler not in before]:
        root.removeHandler(added)
        notifier = getattr(added, "notifier", None) or getattr(added, "_notifier", None)
        if notifier is not None:
            notifier.transport.cleanup()


def attach(kind: type[logging.Handler], conf: cfg.ConfigOpts, *args: Any, **kwargs: Any) -> Any:
    own = type("Own", (kind,), {"CONF": conf})
    handler = own(*args, **kwargs)
    logging.getLogger().addHandler(handler)
    return handler


def sent() -> list[dict[str, Any]]:
    return [message for _, message, _, _ in test.NOTIFICATIONS]


def test_a_record_becomes_a_notification(conf: cfg.ConfigOpts, logger: logging.Logger) -> None:
    attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", "host1", "test")
    logger.error("failed: %s", "disk", extra={"extra": {"id": 5}})
    (message,) = sent()
    assert (message["publisher_id"], message["event_type"]) == ("host1", "logrecord")
    assert message["priority"] == "ERROR"
    payload = message["payload"]
    assert payload.pop("lineno") > 0
    assert payload.pop("thread") == threading.get_ident()
    assert payload.pop("process") > 0
    assert payload == {
        "name": "service.module",
        "levelno": logging.ERROR,
        "levelname": "ERROR",
        "exc_info": None,
        "pathname": __file__,
        "msg": "failed: disk",
        "funcName": "test_a_record_becomes_a_notification",
        "processName": "MainProcess",
        "extra": {"id": 5},
    }


def test_an_exception_becomes_text(conf: cfg.ConfigOpts, logger: logging.Logger) -> None:
    attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="test")
    try:
        raise ValueError("no disk")
    except ValueError:
        logger.exception("failed")
    logger.error("nothing raised", exc_info=True)
    first, second = (message["payload"]["exc_info"] for message in sent())
    assert first.startswith("Traceback")
    assert first.endswith("ValueError: no disk")
    assert second is None


@pytest.mark.parametrize(
    ("level", "priorities"),
    [("DEBUG", ["DEBUG"]), ("WARNING", ["WARN"]), ("CRITICAL", ["CRITICAL"]), ("AUDIT", ["AUDIT"])],
)
def test_the_level_decides_the_priority(
    conf: cfg.ConfigOpts, logger: logging.Logger, level: str, priorities: list[str]
) -> None:
    attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="test")
    number = {"DEBUG": 10, "WARNING": 30, "CRITICAL": 50, "AUDIT": 21}[level]
    logging.addLevelName(number, level)
    logger.log(number, "text")
    assert [message["priority"] for message in sent()] == priorities


@pytest.mark.parametrize("level", ["FLUSH", "PREPARE", "_NOTIFY"])
def test_a_level_named_like_another_method_is_not_sent(
    conf: cfg.ConfigOpts, logger: logging.Logger, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="test")
    logging.addLevelName(27, level)
    logger.log(27, "text")
    assert sent() == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("topic", "topics"), [("a", ["a"]), (["a", "b"], ["a", "b"])])
def test_topics_and_serializer_are_those_given(
    conf: cfg.ConfigOpts, logger: logging.Logger, topic: Any, topics: list[str]
) -> None:
    handler = attach(
        logging_handlers.LoggingNotificationHandler,
        conf,
        "sqlite://",
        driver="messaging",
        topic=topic,
        serializer=NoOpSerializer,
    )
    logger.error("text")
    assert handler.notifier.flush(30) == 0
    driver = handler.notifier.transport.driver
    spans = driver.spans([f"{name}.error" for name in topics])
    assert sorted(span.partition.topic for span in spans if span.stop > span.start) == [
        f"{name}.error" for name in topics
    ]


def test_the_serializer_is_made_from_the_class_given(conf: cfg.ConfigOpts, logger: logging.Logger) -> None:
    seen: list[Any] = []

    class Recording(NoOpSerializer):
        def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
            seen.append(entity["msg"])
            return entity

    attach(
        logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="test", serializer=Recording
    )
    logger.error("text")
    assert seen == ["text"]


def test_a_channel_that_logs_does_not_recurse(
    conf: cfg.ConfigOpts, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="log")
    caplog.clear()
    logger.error("text")
    assert [record.name for record in caplog.records] == [
        "service.module",
        "oslo.messaging.notification.logrecord",
    ]


def test_a_failing_send_goes_to_handle_error_and_ends(
    conf: cfg.ConfigOpts, logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="messaging")
    handler.notifier.transport.cleanup()
    logger.error("text")
    assert capsys.readouterr().err.count("--- Logging error ---") == 1


def test_a_serializer_that_logs_and_raises_ends_as_well(
    conf: cfg.ConfigOpts, logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(NoOpSerializer):
        def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
            logger.error("while sending")
            raise ValueError("broken")

    attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="test", serializer=Broken)
    logger.error("text")
    logger.error("again")
    assert capsys.readouterr().err.count("--- Logging error ---") == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("notifier_kafka", 0),
        ("notifier_kafka.publishing.transport", 0),
        ("notifier_kafka_drivers.sqlite.driver", 0),
        ("kafka.conn", 0),
        ("oslo.messaging.notification.x", 0),
        ("notifier_kafkaesque", 1),
        ("oslo.messaging", 1),
    ],
)
def test_what_sending_itself_logs_is_not_sent(
    conf: cfg.ConfigOpts, logger: logging.Logger, name: str, expected: int
) -> None:
    attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="test")
    logging.getLogger(name).error("text")
    assert len(sent()) == expected


def test_the_error_handler_sends_the_text_before_its_arguments(
    conf: cfg.ConfigOpts, logger: logging.Logger
) -> None:
    conf.set_override("driver", ["test"], group="oslo_messaging_notifications")
    attach(logging_handlers.PublishErrorsHandler, conf, level=logging.ERROR)
    logger.warning("no error")
    logger.error("failed: %s", "disk")
    logger.error(ValueError("no disk"))
    assert [(message["event_type"], message["priority"], message["payload"]) for message in sent()] == [
        ("error_notification", "ERROR", {"error": "failed: %s"}),
        ("error_notification", "ERROR", {"error": "no disk"}),
    ]
    assert sent()[0]["publisher_id"] == "error.publisher"


@pytest.mark.parametrize("group", ["notifications", "oslo_messaging_notifications"])
def test_the_error_handler_is_silent_beside_the_channel_log(
    conf: cfg.ConfigOpts, logger: logging.Logger, group: str
) -> None:
    conf.set_override("driver", ["test", "log"], group=group)
    attach(logging_handlers.PublishErrorsHandler, conf)
    logger.error("failed")
    assert sent() == []


def test_a_logging_configuration_can_name_the_handler(logger: logging.Logger) -> None:
    logging.config.dictConfig(
        {
            "version": 1,
            "incremental": False,
            "disable_existing_loggers": False,
            "handlers": {
                "notifier": {
                    "class": "notifier_kafka.integrations.logging_handlers.LoggingNotificationHandler",
                    "url": "sqlite://",
                    "driver": "test",
                }
            },
            "loggers": {"service.configured": {"handlers": ["notifier"]}},
        }
    )
    configured = logging.getLogger("service.configured")
    (handler,) = configured.handlers
    assert isinstance(handler, logging_handlers.LoggingNotificationHandler)
    try:
        configured.error("text")
        assert [message["payload"]["msg"] for message in sent()] == ["text"]
    finally:
        configured.removeHandler(handler)
        handler.notifier.transport.cleanup()


def test_a_handler_is_entered_like_a_lock_by_several_threads_at_once(
    conf: cfg.ConfigOpts, logger: logging.Logger
) -> None:
    handler = attach(logging_handlers.LoggingNotificationHandler, conf, "sqlite://", driver="test")
    record = logger.makeRecord(logger.name, logging.ERROR, __file__, 1, "text", (), None)

    def handle() -> None:
        with handler.lock:  # as Handler.handle of Python 3.13 does
            handler.emit(record)

    handler.acquire()
    handler._at_fork_reinit()
    with handler.lock:
        other = threading.Thread(target=handle)
        other.start()
        other.join(30)
    handler.release()
    assert not other.is_alive()
    assert [message["payload"]["msg"] for message in sent()] == ["text"]
