"""The channel log: it writes notifications to the program's own log."""

import json
import logging
import re
from collections.abc import Sequence

from notifier_kafka.contract import secret_masking
from notifier_kafka.notification import Notification
from notifier_kafka.publishing.channels import channel
from notifier_kafka.wire import codec

# oslo.messaging's name, because logging configurations refer to it.
LOGGER = "oslo.messaging.notification"
# logging keeps every logger for ever, and one more object for each dot in its name.
MAX_NAME_CHARACTERS = 255
MAX_NAME_DOTS = 20
MAX_LOGGERS = 1_000

# logging has no level for audit and sample; they are logged at info. oslo.messaging drops both.
_LEVELS = {
    "DEBUG": logging.DEBUG,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRITICAL": logging.CRITICAL,
}


class LogChannel(channel.Channel):
    """Logs each notification as one line of JSON, with secrets masked.

    The logger has the event type in its name, the level is that of the priority. Event types
    with too long a name, and all after the first thousand, share one logger.
    """

    publishes = False

    def send(self, notifications: Sequence[Notification], how: channel.Sending) -> None:  # noqa: ARG002
        made: list[tuple[logging.Logger, int, str]] = []
        for sent in notifications:
            logger = logging.getLogger(_logger_name(sent.event_type))
            level = _LEVELS.get(sent.priority.upper(), logging.INFO)
            if logger.isEnabledFor(level):
                made.append((logger, level, _line(sent)))
        for logger, level, line in made:
            logger.log(level, line)


_made: set[str] = set()


def _logger_name(event_type: str | None) -> str:
    too_long = event_type and (len(event_type) > MAX_NAME_CHARACTERS or event_type.count(".") > MAX_NAME_DOTS)
    if not event_type or too_long:
        return LOGGER
    # Event types may come from outside. A line break in one would forge a log line.
    name = f"{LOGGER}.{re.sub(r'[^ -~]', '_', event_type)}"
    if name not in _made:
        # A logger that the program configured exists already, and may be used beyond the limit.
        if len(_made) >= MAX_LOGGERS and name not in logging.root.manager.loggerDict:
            return LOGGER
        _made.add(name)
    return name


def _line(sent: Notification) -> str:
    # Through the wire format: values are converted as on the bus.
    value, _ = codec.encode(sent, "flat", None)
    message = json.loads(value)
    message.pop("_context", None)
    return json.dumps(secret_masking.mask_members(message))
