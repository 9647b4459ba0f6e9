"""The log of kafka-python: muted by default, without secrets."""

import logging
from collections.abc import Mapping

SECRETS = ("sasl.password", "ssl.key.password")
MASK = "***"


class SecretFilter(logging.Filter):
    """Masks secrets: at DEBUG the library logs its configuration and all that it sends."""

    def __init__(self) -> None:
        super().__init__()
        self._spellings: frozenset[str] = frozenset()

    def add(self, secret: str) -> None:
        """Mask ``secret`` from now on, also in the repr of a text and of bytes."""
        shown = repr(secret)[1:-1], repr(secret.encode())[2:-1]
        self._spellings |= {secret, *shown}

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        # The longest first, because one may be a part of another.
        for spelling in sorted(self._spellings, key=len, reverse=True):
            text = text.replace(spelling, MASK)
        record.msg, record.args = text, ()
        return True


SECRET_FILTER = SecretFilter()


def quieten(given: Mapping[str, str]) -> None:
    """Mute the library, which logs each try to connect, unless its level is set; mask secrets."""
    logger = logging.getLogger("kafka")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    for name in SECRETS:
        if secret := given.get(name):
            SECRET_FILTER.add(secret)
    # A filter does not apply to child loggers.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "kafka":
            logging.getLogger(name).addFilter(SECRET_FILTER)
