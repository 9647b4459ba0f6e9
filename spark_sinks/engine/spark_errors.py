"""Turns errors of Spark and of others into one readable line."""

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from notifier_kafka.errors import LogUnusable, MessagingException, TransportUnavailable

SPARK_EXCEPTIONS = (PySparkException, Py4JError)

_CLASS = re.compile(r"^(?:Caused by: )?(?:\w+\.)+(?P<name>[A-Z][\w$]*)(?:: (?P<said>.*))?$")
_FRAME = re.compile(r"\s+(at|File|\^|\.\.\.) ?|Traceback")
_LATER = ("Timeout", "Disconnect", "Connect", "NotLeader", "Unavailable", "NotAvailable")


def summarize(error: BaseException) -> str:
    """Return an error's message in one line: for a Java error, its innermost cause."""
    lines = str(error).splitlines()
    causes = [match for line in lines if (match := _CLASS.match(line.strip()))]
    if causes:
        last = causes[-1]
        text = f"{last['name']}: {last['said'] or ''}".removesuffix(": ")
    else:
        text = " ".join(line for line in lines if not _FRAME.match(line))
    return " ".join(text.split())[:300] or type(error).__name__


def translate(error: Exception, batch: int) -> MessagingException:
    """Return an error of this package for one of Spark: ``retriable`` says whether a retry makes sense."""
    text = summarize(error)
    kind = TransportUnavailable if any(word in text for word in _LATER) else LogUnusable
    return kind(f"Spark: {text}; the next run repeats batch {batch}")
