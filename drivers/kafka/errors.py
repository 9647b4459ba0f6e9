"""Kafka's errors as errors of this package: the only table of them.

Brokers number their errors, and both client libraries keep the numbers. The errors that a library adds
are in a table of its own, in ``clients/``.
"""

from notifier_kafka.errors import (
    CommitRefused,
    ConfigurationError,
    DeliveryBarred,
    DeliveryFailed,
    GroupBusy,
    LogUnusable,
    MessagingException,
    TopicNotFound,
    TransportUnavailable,
)


class AccessDenied(TransportUnavailable):
    """The brokers deny a request. It may be granted later: a listener waits for that."""


class LoginRefused(AccessDenied):
    """The brokers refuse the login."""


class TopicExists(ConfigurationError):
    """The topic to be created exists already."""


class TopicGone(DeliveryFailed):
    """The topic of a record no longer exists. It may be created again."""


class PositionGone(LogUnusable):
    """The requested offset is not on the log any more, or not yet."""


Meaning = type[MessagingException]

_MEANINGS: dict[Meaning, tuple[int, ...]] = {
    TransportUnavailable: (
        *(5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 19, 20, 41, 51, 52, 55, 56, 60, 70, 71, 72, 74, 75),
        *(77, 78, 80, 83, 84, 85, 88, 89, 96, 97, 101, 102, 104, 105, 106, 107, 108, 114, 115, 116),
        *(117, 118, 122, 123, 124, 129, 133),
    ),
    AccessDenied: (29, 30, 31, 33, 34, 53, 54, 58, 61, 62, 63, 64, 65, 66, 67, 93),
    TopicNotFound: (3, 69, 91, 100, 103),
    TopicExists: (36,),
    CommitRefused: (22, 25, 27, 79, 82, 110, 111, 113),
    GroupBusy: (68, 86),
    PositionGone: (1, 98, 99, 109),
    DeliveryFailed: (2, 4, 10, 18, 21, 32, 43, 45, 46, 47, 48, 49, 59, 87, 90, 120, 121),
    ConfigurationError: (
        *(12, 17, 23, 24, 26, 28, 35, 37, 38, 39, 40, 42, 44, 50, 73, 76, 81, 92, 94, 95),
        *(112, 119, 125, 126, 127, 128, 130, 131, 132),
    ),
    LogUnusable: (-1, 57),
}

LOGIN_REFUSED = 58
MECHANISM_REFUSED = 33

BROKER: dict[int, Meaning] = {code: meaning for meaning, codes in _MEANINGS.items() for code in codes}

_ADVICE: dict[int, str] = {
    2: "the broker found the record damaged; a compacted topic takes no record without a key",
    7: "the brokers took too long: they may be starting or overloaded",
    10: "the record, or the batch that it was in, exceeds the topic's max.message.bytes: raise it, or send "
    "less, or with a smaller [drivers_kafka] batch_size",
    17: "a topic's name has 1 to 249 of the characters A-Z a-z 0-9 . _ -",
    19: "too few replicas are in sync: bring brokers back, or lower min.insync.replicas",
    29: "the user lacks an ACL on the topic: Read and Describe to listen, Write and Create to publish",
    30: "the user lacks the ACL Read on the group",
    31: "the user lacks an ACL on the cluster",
    38: "there are fewer brokers than replicas asked for: lower [drivers_kafka] topic_replication",
    53: "the user lacks the ACL Write on the transactional id",
    LOGIN_REFUSED: "the brokers refuse the login: check user, password and [drivers_kafka] sasl_mechanism",
    82: "another process joined with the same [drivers_kafka] group_instance_id",
}


def broker_error(code: int, what: str, detail: str = "") -> MessagingException:
    """Make the error for a broker's answer. ``what`` names the request.

    A code that is newer than this table is not retried for ever.
    """
    if code in (LOGIN_REFUSED, MECHANISM_REFUSED):
        return refused_login()
    advice = _ADVICE.get(code)
    if advice and BROKER[code] is AccessDenied:
        return AccessDenied(f"{what}: {advice}")  # each library has its own words for it
    text = " ".join(str(detail).split()) or f"error {code}"
    return BROKER.get(code, LogUnusable)(f"{what}: {text}" + (f" ({advice})" if advice else ""))


def refused_login() -> LoginRefused:
    """Make the error for a refused login, for which each library has its own words."""
    return LoginRefused(_ADVICE[LOGIN_REFUSED])


def for_record(error: MessagingException) -> MessagingException:
    """Make the error that a publisher reports: a retriable one, or DeliveryFailed."""
    if isinstance(error, DeliveryFailed) or (error.retriable and not isinstance(error, AccessDenied)):
        return error
    if isinstance(error, LoginRefused):
        return DeliveryBarred(str(error))
    return (TopicGone if isinstance(error, TopicNotFound) else DeliveryFailed)(str(error))
