"""What kafka-python logs."""

import logging
from collections.abc import Mapping

SECRETS = ("sasl.password", "ssl.key.password")
MASK = "***"


class Masked(logging.Filter):
    """Takes secrets out of what is logged: at DEBUG the library shows its configuration and all it sends."""

    def __init__(self) -> None:
        super().__init__()
        self._spellings: frozenset[str] = frozenset()

    def add(self, secret: str) -> None:
        """Mask ``secret`` from now on, also where it is shown as Python spells texts and bytes."""
        shown = repr(secret)[1:-1], repr(secret.encode())[2:-1]
        self._spellings |= {secret, *shown}

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        # The longest first, as one may be a part of another.
        for spelling in sorted(self._spellings, key=len, reverse=True):
            said = said.replace(spelling, MASK)
        record.msg, record.args = said, ()
        return True


MASKED = Masked()


def quieten(given: Mapping[str, str]) -> None:
    """Mute the library, which logs each try to connect, unless somebody set its level; mask secrets."""
    logger = logging.getLogger("kafka")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    for name in SECRETS:
        if secret := given.get(name):
            MASKED.add(secret)
    # A filter does not reach the loggers below its own.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "kafka":
            logging.getLogger(name).addFilter(MASKED)
