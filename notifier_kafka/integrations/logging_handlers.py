"""Logging handlers that send log records as notifications."""

import logging
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.publishing.channels import log
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import get_notification_transport
from notifier_kafka.wire.serializer import Serializer

# These loggers may log because of sending, also on threads of the transport and its client
# library: a notification about such a record would cause the next one.
_OWN_LOGGERS = ("notifier_kafka", "notifier_kafka_drivers", "kafka", log.LOGGER)
_LEVELS = frozenset((*PRIORITIES, "warning"))

# True while this thread sends. Records logged meanwhile are not sent: that would never end.
_sending = threading.local()


class _NoLock:
    """A lock that never blocks, with all methods that logging calls."""

    def acquire(self) -> None:
        pass

    release = __enter__ = _at_fork_reinit = acquire

    def __exit__(self, *_: object) -> None:
        pass


class _NotificationHandler(logging.Handler):
    """Sends records without recursion, and never raises into the program."""

    # The global ConfigOpts, because logging's fileConfig and dictConfig cannot pass an object.
    CONF: ClassVar[cfg.ConfigOpts] = cfg.CONF
    """The configuration. A subclass may set another one."""

    def createLock(self) -> None:  # noqa: N802 - logging's name
        """Use no lock: notifiers are thread-safe.

        With a lock, a thread of the transport that logs would wait for a thread that sends.
        """
        # Not None: since Python 3.13 logging enters the lock without checking for None.
        self.lock = _NoLock()  # type: ignore[assignment]

    def emit(self, record: logging.LogRecord) -> None:
        """Send ``record``. An error goes to ``handleError``."""
        if getattr(_sending, "active", False) or _is_own(record.name):
            return
        _sending.active = True
        try:
            self.send(record)
        except Exception:  # noqa: BLE001 - logging's rule: a handler does not raise
            self.handleError(record)
        finally:
            _sending.active = False

    def send(self, record: logging.LogRecord) -> None:
        raise NotImplementedError


class LoggingNotificationHandler(_NotificationHandler):
    """Sends each log record as a notification ``logrecord``, with its level as the priority.

    In a logging configuration::

        [handler_notifier]
        class=notifier_kafka.LoggingNotificationHandler
        level=ERROR
        args=('kafka://broker:9092',)
    """

    def __init__(
        self,
        url: str | None,
        publisher_id: str | None = None,
        driver: str | None = None,
        topic: str | list[str] | None = None,
        serializer: Callable[[], Serializer] | None = None,
    ) -> None:
        super().__init__()
        self.notifier = Notifier(
            get_notification_transport(self.CONF, url),
            publisher_id,
            driver,
            serializer() if serializer else None,
            topics=[topic] if isinstance(topic, str) else topic,
        )

    def send(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower()
        # A custom level could have the name of another attribute of the notifier.
        if level in _LEVELS:
            getattr(self.notifier, level)(None, "logrecord", _members(record))


class LoggingErrorNotificationHandler(_NotificationHandler):
    """Sends each log record as a notification ``error_notification`` at priority error.

    As in oslo.messaging, it sends nothing if the channel ``log`` is configured.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._notifier = Notifier(get_notification_transport(self.CONF), "error.publisher")
        self._silent = "log" in options.notifications(self.CONF).driver

    def send(self, record: logging.LogRecord) -> None:
        if self._silent:
            return
        # The text without its arguments, as in oslo.messaging, so that equal errors can be grouped.
        self._notifier.error({}, "error_notification", {"error": str(record.msg)})


PublishErrorsHandler = LoggingErrorNotificationHandler


def _is_own(name: str) -> bool:
    return any(name == own or name.startswith(f"{own}.") for own in _OWN_LOGGERS)


def _members(record: logging.LogRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "levelno": record.levelno,
        "levelname": record.levelname,
        "exc_info": _exception_text(record),
        "pathname": record.pathname,
        "lineno": record.lineno,
        "msg": record.getMessage(),
        "funcName": record.funcName,
        "thread": record.thread,
        "processName": record.processName,
        "process": record.process,
        "extra": getattr(record, "extra", None),
    }


def _exception_text(record: logging.LogRecord) -> str | None:
    # A traceback object cannot be encoded.
    if not record.exc_info:
        return record.exc_text
    return None if record.exc_info[0] is None else logging.Formatter().formatException(record.exc_info)
