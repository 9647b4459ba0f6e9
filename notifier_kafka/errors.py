"""Every error that this package raises on purpose.

Errors that oslo.messaging also has keep its name and its place in the tree, so that an
``except`` clause written for it still works.

::

    MessagingException
    ├── MessagingTimeout                 a wait ended before its condition came true
    ├── DeliveryFailed                   a notification or record did not reach the log
    │   │                                (oslo.messaging's name: MessageDeliveryFailure)
    │   ├── OutboxFull                   the bounded buffer before the log has no room
    │   ├── DeliveryGivenUp              all allowed tries failed; a later one may succeed
    │   ├── DeliveryBarred               the log accepts no record until a person changes something
    │   ├── SpoolFull                    the spool was full; its oldest records were dropped
    │   └── SpoolTooOld                  the record was older than the spool's limit
    ├── EncodeError                      a notification cannot be written in the wire format
    ├── DecodeError                      bytes on the log are not a notification
    ├── CommitRefused                    another member owns the partition now
    ├── TransportUnavailable             the log cannot be reached now
    ├── LogUnusable                      the log exists and cannot be used as it is
    ├── TopicNotFound                    the topic does not exist
    ├── GroupBusy                        a group with active members cannot be changed
    ├── InvalidTarget                    a target names no topic
    ├── ConfigurationError               an option, file or argument has a wrong value
    │   └── InvalidTransportURL
    ├── DriverLoadFailure                a plugin exists and fails to load
    │   └── DriverNotFound               no plugin of that name is installed
    └── MessagingServerError
        ├── ExecutorLoadFailure
        ├── ServerListenError
        └── TaskTimeout                  a MessagingTimeout as well: a listener did not end in time

``retriable`` on a class says whether the same call may succeed later unchanged. It is an
attribute, so that no caller needs a list of classes.
"""

from typing import ClassVar


class MessagingException(Exception):
    """Base of every error of this package."""

    retriable: ClassVar[bool] = False


class MessagingTimeout(MessagingException):
    """A wait ended before its condition came true."""

    retriable = True


class DeliveryFailed(MessagingException):
    """A notification or record did not reach the log, after all allowed retries."""


MessageDeliveryFailure = DeliveryFailed


class OutboxFull(DeliveryFailed):
    """The bounded buffer between the caller and the log has no room."""

    retriable = True


class DeliveryGivenUp(DeliveryFailed):
    """A record was not sent within the allowed tries and time, or before its publisher was closed."""

    retriable = True


class DeliveryBarred(DeliveryFailed):
    """The log accepts no record until a person repairs it or grants access. A spool keeps its records."""


class SpoolFull(DeliveryFailed):
    """The spool was larger than allowed, and its oldest records were dropped."""


class SpoolTooOld(DeliveryFailed):
    """A record was in the spool for longer than allowed."""


class EncodeError(MessagingException, ValueError):
    """A notification contains something that the wire format cannot hold."""


class DecodeError(MessagingException, ValueError):
    """The bytes of a record are not a notification."""


class CommitRefused(MessagingException):
    """Some partitions of a commit belong to another member; nothing was committed.

    ``partitions`` are those that are no longer owned. The others may be committed again.
    """

    def __init__(self, message: str, partitions: frozenset[tuple[str, int]] = frozenset()) -> None:
        super().__init__(message)
        self.partitions = partitions


class TransportUnavailable(MessagingException):
    """The log cannot be reached now, or is locked."""

    retriable = True


class LogUnusable(MessagingException):
    """The log exists and cannot be used: corrupt, not ours, of a newer version, full or read-only."""


class TopicNotFound(MessagingException):
    """The log has no topic of that name."""


class GroupBusy(MessagingException):
    """A group was to be changed while it has active members."""

    retriable = True


class InvalidTarget(MessagingException, ValueError):
    """A target names no topic."""

    def __init__(self, msg: str, target: object) -> None:
        super().__init__(f"{msg}: {target}")
        self.target = target


class ConfigurationError(MessagingException):
    """An option, a file or an argument has a value that cannot be used."""


class InvalidTransportURL(ConfigurationError):
    """A transport URL cannot be understood. ``url`` is masked: it may hold a password."""

    def __init__(self, url: str, msg: str) -> None:
        super().__init__(f"transport URL {url!r}: {msg}")
        self.url = url


class DriverLoadFailure(MessagingException):
    """A plugin (driver, channel, key function, client) is installed and fails to load."""

    def __init__(self, driver: str, ex: object) -> None:
        super().__init__(f"{driver}: {ex}")
        self.driver = driver
        self.ex = ex


class DriverNotFound(DriverLoadFailure):
    """No plugin of that name is installed."""


class MessagingServerError(MessagingException):
    """Base of the errors of a listener."""


class ExecutorLoadFailure(MessagingServerError):
    """The requested executor does not exist here."""

    def __init__(self, executor: str, ex: object) -> None:
        super().__init__(f"executor {executor!r}: {ex}")
        self.executor = executor
        self.ex = ex


class ServerListenError(MessagingServerError):
    """A listener could not start on its targets."""

    def __init__(self, target: object, ex: object) -> None:
        super().__init__(f"cannot listen on {target}: {ex}")
        self.target = target
        self.ex = ex


class TaskTimeout(MessagingServerError, MessagingTimeout):
    """A listener did not end in the time given."""
