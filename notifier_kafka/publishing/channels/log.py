"""The channel log: notifications become lines of the program's own log."""

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
# logging keeps every logger for ever, and one more thing for each dot in its name.
LONGEST, MOST_DOTS, MOST = 255, 20, 1_000

# logging has no level for audit and sample. oslo.messaging drops both with a warning.
_LEVELS = {
    "DEBUG": logging.DEBUG,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRITICAL": logging.CRITICAL,
}


class LogChannel(channel.Channel):
    """Logs each notification as one line of JSON, with secrets masked.

    The logger is named for the event type, the level for the priority. Event types that no
    logging configuration would name, and those behind the first thousand, share one logger.
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
    if not event_type or len(event_type) > LONGEST or event_type.count(".") > MOST_DOTS:
        return LOGGER
    # Event types may come from outside, and a line break in one would forge a log line.
    name = f"{LOGGER}.{re.sub(r'[^ -~]', '_', event_type)}"
    if name not in _made:
        # What is configured is there already, and stays what it is.
        if len(_made) >= MOST and name not in logging.root.manager.loggerDict:
            return LOGGER
        _made.add(name)
    return name


def _line(sent: Notification) -> str:
    # By way of the wire format: the log shows what the bus would, by the same conversions.
    value, _ = codec.encode(sent, "flat", None)
    message = json.loads(value)
    message.pop("_context", None)
    return json.dumps(secret_masking.mask_members(message))
