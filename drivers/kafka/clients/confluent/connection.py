"""librdkafka's own errors in the words of this package, and the state of its connections.

Errors of brokers, which both clients number alike, are in ``drivers.kafka.errors``.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from notifier_kafka.contract.driver import Partition, Positions
from notifier_kafka.errors import (
    CommitRefused,
    ConfigurationError,
    DeliveryFailed,
    DeliveryGivenUp,
    LogUnusable,
    MessagingException,
    OutboxFull,
    TopicNotFound,
    TransportUnavailable,
)

from ... import diagnosis, errors

LOG = logging.getLogger(__name__)

_NAMES: dict[errors.Meaning, str] = {
    TransportUnavailable: "_TRANSPORT _RESOLVE _ALL_BROKERS_DOWN _TIMED_OUT _TIMED_OUT_QUEUE _WAIT_COORD "
    "_WAIT_CACHE _IN_PROGRESS _PREV_IN_PROGRESS _RETRY _SSL _UNKNOWN_BROKER _DESTROY_BROKER _INTR "
    "_NODE_UPDATE _ISR_INSUFF _OUTDATED _PARTIAL _UNDERFLOW _NOENT _CONFLICT",
    errors.AccessDenied: "_AUTHENTICATION",
    TopicNotFound: "_UNKNOWN_TOPIC _UNKNOWN_PARTITION",
    CommitRefused: "_ASSIGNMENT_LOST _MAX_POLL_EXCEEDED _FENCED _NO_OFFSET _ASSIGN_PARTITIONS "
    "_REVOKE_PARTITIONS",
    errors.PositionGone: "_AUTO_OFFSET_RESET _LOG_TRUNCATION _PARTITION_EOF",
    OutboxFull: "_QUEUE_FULL",
    DeliveryGivenUp: "_MSG_TIMED_OUT _PURGE_QUEUE _PURGE_INFLIGHT",
    DeliveryFailed: "_GAPLESS_GUARANTEE _INCONSISTENT "
    "_KEY_SERIALIZATION _VALUE_SERIALIZATION _INVALID_DIFFERENT_RECORD",
    ConfigurationError: "_INVALID_ARG _NOT_CONFIGURED _UNKNOWN_GROUP _UNKNOWN_PROTOCOL _UNSUPPORTED_FEATURE "
    "_NOT_IMPLEMENTED _INVALID_TYPE _EXISTING_SUBSCRIPTION",
    LogUnusable: "_BAD_MSG _BAD_COMPRESSION _FAIL _DESTROY _CRIT_SYS_RESOURCE _FS _STATE _FATAL _READ_ONLY "
    "_KEY_DESERIALIZATION _VALUE_DESERIALIZATION _APPLICATION _NOOP",
}

# Older libraries lack the newest of these names.
LOCAL: dict[int, errors.Meaning] = {
    getattr(KafkaError, name): meaning
    for meaning, names in _NAMES.items()
    for name in names.split()
    if hasattr(KafkaError, name)
}

_ADVICE = {
    KafkaError._BAD_COMPRESSION: "damaged, or it opens to more than "  # noqa: SLF001 - its public name
    "receive.message.max.bytes: move the group behind it with notifier-kafka groups reset",
}

SUSPICIOUS_SECONDS = 15.0  # of silence, after which we check whether librdkafka lost its brokers
ANSWER_SECONDS = 2.0  # that brokers have to answer that check
CHECKED_TOPIC = "__consumer_offsets"  # one topic only: the list of all may be long

NO_CONNECTION = frozenset((KafkaError._ALL_BROKERS_DOWN, KafkaError._SSL))  # noqa: SLF001 - these are public
UNREACHED = TransportUnavailable("no broker is reached")


def translate(error: KafkaError, what: str) -> MessagingException:
    """Make this package's error of one of librdkafka's. ``what`` names the request."""
    code = error.code()
    if code == KafkaError._AUTHENTICATION:  # noqa: SLF001 - its public name
        return errors.refused_login()
    if code >= 0 or code not in LOCAL:
        return errors.broker_error(code, what, error.str())
    advice = _ADVICE.get(code)
    return LOCAL[code](f"{what}: {' '.join(error.str().split())}" + (f" ({advice})" if advice else ""))


class Log:
    """Takes librdkafka's log, which has each try to connect; we log what matters ourselves, once."""

    def log(self, _level: int, text: str, *args: object) -> None:
        LOG.debug(text, *args)


class ConnectionState:
    """What a librdkafka client last reported of its connections."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self.down: MessagingException | None = None
        self.told_at = 0.0
        self.fatal = False

    def on_error(self, error: KafkaError) -> None:
        self.told_at = time.monotonic()
        self.fatal = self.fatal or error.fatal()
        if error.code() in NO_CONNECTION:
            self.down = self.down or UNREACHED
        elif error.code() == KafkaError._AUTHENTICATION or error.fatal():  # noqa: SLF001 - its public name
            self.down = translate(error, "no broker is reached")

    def reason(self) -> MessagingException | None:
        """Return what is wrong with the connections, or None. May take seconds to find out."""
        return diagnosis.unreached(self._config) if self.down is UNREACHED else self.down


def has_lost_brokers(handle: Any, config: Mapping[str, Any]) -> bool:
    """Tell whether a client will not reconnect by itself: it gets no answer where a new one does.

    A cluster whose brokers were all away names none of them for a moment when they are back.
    librdkafka then drops those that it knows and, since 2.10, may not bootstrap again (its
    issue 5301, open in 2.16). Blocks for seconds.
    """
    if _answered(handle):
        return False
    kept = {
        name: value for name, value in config.items() if not name.startswith(("group.", "transactional."))
    }
    try:
        new = create(confluent_kafka.Producer, kept, ConnectionState(config))
    except ConfigurationError:
        return False  # a TLS file may have been removed since the start: a new one would not do better
    # Asked again, as the brokers may have come back between the two.
    return _answered(new) and not _answered(handle)


def _answered(handle: Any) -> bool:
    try:
        handle.list_topics(CHECKED_TOPIC, timeout=ANSWER_SECONDS)
    except KafkaException:
        return False
    return True


def create(kind: Callable[[dict[str, Any]], Any], config: Mapping[str, Any], state: ConnectionState) -> Any:
    """Make a producer, consumer or admin client that reports its connections to ``state``."""
    try:
        return kind({**config, "error_cb": state.on_error, "logger": Log()})
    except KafkaException as error:
        # Some of its messages end with a line break.
        raise ConfigurationError(f"[drivers_kafka]: {' '.join(error.args[0].str().split())}") from None


def attempt(what: str, call: Callable[[], Any]) -> Any:
    """Call the library; raise only this package's errors."""
    try:
        return call()
    except KafkaException as error:
        raise translate(error.args[0], what) from None
    except RuntimeError as error:
        raise errors.broker_error(-1, what, str(error)) from None


class CallWithTimeout:
    """A call in a thread: librdkafka may lose a request to a broker that it drops, and never return."""

    def __init__(self, what: str, call: Callable[[], Any]) -> None:
        self._what = what
        self._outcome: Future[None] = Future()
        threading.Thread(target=self._make, args=(call,), name="notifier-kafka-call", daemon=True).start()

    @property
    def done(self) -> bool:
        return self._outcome.done()

    def wait(self, seconds: float) -> None:
        """Wait for the call; raise what it raised, or ``TransportUnavailable`` when time is over."""
        try:
            self._outcome.result(seconds)
        except TimeoutError:
            raise TransportUnavailable(f"{self._what}: no answer within {seconds:g} s") from None

    def _make(self, call: Callable[[], Any]) -> None:
        try:
            attempt(self._what, call)
        except Exception as error:  # noqa: BLE001 - the waiting thread raises it
            self._outcome.set_exception(error)
        else:
            self._outcome.set_result(None)


def listed(positions: Positions) -> list[TopicPartition]:
    """Spell positions as librdkafka does."""
    return [TopicPartition(*partition, offset) for partition, offset in positions.items()]


def at_positions(found: Iterable[TopicPartition]) -> dict[Partition, int]:
    """Read what librdkafka tells of positions, without the partitions that have none."""
    return {Partition(at.topic, at.partition): at.offset for at in found if at.offset >= 0}
