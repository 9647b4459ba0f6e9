"""kafka-python's own errors in the words of this package.

Errors of brokers, which both clients number alike, are in ``drivers.kafka.errors``.
"""

import os
import re
from collections.abc import Callable
from typing import Any

from kafka import errors as kafka_errors

from notifier_kafka.errors import (
    CommitRefused,
    ConfigurationError,
    DeliveryFailed,
    LogUnusable,
    MessagingException,
    TransportUnavailable,
)

from ... import errors

LOCAL: dict[type[Exception], errors.Meaning] = {
    kafka_errors.RetriableError: TransportUnavailable,
    kafka_errors.UnknownBrokerIdError: TransportUnavailable,
    kafka_errors.KafkaProtocolError: TransportUnavailable,
    kafka_errors.CommitFailedError: CommitRefused,
    kafka_errors.IllegalArgumentError: ConfigurationError,
    kafka_errors.KafkaConfigurationError: ConfigurationError,
    kafka_errors.UnrecognizedBrokerVersion: ConfigurationError,
    kafka_errors.UnsupportedCodecError: ConfigurationError,
    kafka_errors.NoOffsetForPartitionError: errors.PositionGone,
    kafka_errors.LogTruncationError: errors.PositionGone,
    kafka_errors.TransactionAbortedError: DeliveryFailed,
    kafka_errors.QuotaViolationError: TransportUnavailable,
    kafka_errors.IllegalStateError: LogUnusable,
    kafka_errors.BrokerResponseError: LogUnusable,
    kafka_errors.KafkaError: LogUnusable,
    # Its event loop raises these two when it is closed during a call.
    RuntimeError: TransportUnavailable,
    OSError: TransportUnavailable,
    TypeError: ConfigurationError,
    ValueError: ConfigurationError,
}

COMPRESSION = "kafka-python needs another library for it: pip install 'notifier-kafka[compression]'"

_SYSTEM_ERROR = re.compile(r"\b(\d+) E[A-Z]{4,}$")  # "111 ECONNREFUSED", which means nothing to most users


def translate(error: BaseException, what: str) -> MessagingException:
    """Make this package's error of one of kafka-python's. ``what`` names the request."""
    code = getattr(error, "errno", None)
    if isinstance(error, kafka_errors.TopicAuthorizationFailedError):
        # For several topics at once only the argument names the denied ones.
        denied = next((each for each in error.args if isinstance(each, set)), ())
        what = f"topic {', '.join(sorted(denied))}" if denied else what
    if isinstance(error, kafka_errors.BrokerResponseError) and isinstance(code, int):
        # Its text repeats the whole request; the description is the useful part.
        return errors.broker_error(code, what, getattr(error, "description", ""))
    if isinstance(error, kafka_errors.UnsupportedCodecError):
        return ConfigurationError(f"{what}: {error}: {COMPRESSION}")
    meaning = next((LOCAL[kind] for kind in type(error).__mro__ if kind in LOCAL), LogUnusable)
    text = " ".join(str(error).split()) or type(error).__name__
    if system := _SYSTEM_ERROR.search(text):
        text = os.strerror(int(system[1]))
    return meaning(f"{what}: {text}")


def attempt(what: str, call: Callable[[], Any]) -> Any:
    """Call the library; raise only this package's errors."""
    try:
        return call()
    except (kafka_errors.KafkaError, RuntimeError, OSError, TypeError, ValueError) as error:
        raise translate(error, what) from None
