"""Every error that this package raises on purpose.

The names in the left column of the tree that oslo.messaging also has keep its
name and its place, so that an ``except`` clause written for it still works.

::

    MessagingException
    ├── MessagingTimeout                 a wait ended before its condition came true
    ├── DeliveryFailed                   a notification or record did not reach the log
    │   │                                (oslo.messaging's name: MessageDeliveryFailure)
    │   ├── OutboxFull                   the bounded buffer before the log has no room
    │   ├── DeliveryGivenUp              the tries allowed were in vain; another may not be
    │   ├── DeliveryBarred               the log takes nothing from us until a person changes that
    │   ├── SpoolFull                    the spool had no room for what was oldest in it
    │   └── SpoolTooOld                  it lay in the spool for longer than it may
    ├── EncodeError                      a notification has no form on the wire
    ├── DecodeError                      bytes on the log are no notification
    ├── CommitRefused                    the partition belongs to another member now
    ├── TransportUnavailable             the log cannot be reached at the moment
    ├── LogUnusable                      the log is there and cannot be used as it is
    ├── TopicNotFound                    no such topic
    ├── GroupBusy                        a group with live members cannot be changed
    ├── InvalidTarget                    a target names no topic
    ├── ConfigurationError               an option, file or argument has a wrong value
    │   └── InvalidTransportURL
    ├── DriverLoadFailure                a plugin exists and fails to load
    │   └── DriverNotFound               no plugin of that name is installed
    └── MessagingServerError
        ├── ExecutorLoadFailure
        ├── ServerListenError
        └── TaskTimeout                  a MessagingTimeout as well: a listener did not end in time

``retriable`` on a class says whether the same call may succeed later without a
change by its user. It is data so that nobody needs a list of ``isinstance``.
"""

from typing import ClassVar


class MessagingException(Exception):
    """Base of every error of this package."""

    retriable: ClassVar[bool] = False


class MessagingTimeout(MessagingException):
    """A wait ended before what it waited for came true."""

    retriable = True


class DeliveryFailed(MessagingException):
    """A notification or record did not reach the log, after the retries asked for."""


MessageDeliveryFailure = DeliveryFailed


class OutboxFull(DeliveryFailed):
    """The bounded buffer between the caller and the log has no room."""

    retriable = True


class DeliveryGivenUp(DeliveryFailed):
    """A record was not sent within the tries and time allowed, or before its publisher was closed."""

    retriable = True


class DeliveryBarred(DeliveryFailed):
    """The log takes no record at all until a person mends it or lets us in; a spool keeps what it has."""


class SpoolFull(DeliveryFailed):
    """The spool exceeded its bytes, and gave up what was oldest in it."""


class SpoolTooOld(DeliveryFailed):
    """A record lay in the spool for longer than it may."""


class EncodeError(MessagingException, ValueError):
    """A notification holds something that has no form on the wire."""


class DecodeError(MessagingException, ValueError):
    """The bytes of a record are no notification."""


class CommitRefused(MessagingException):
    """Some partitions of a commit belong to another member; nothing was changed.

    ``partitions`` are those that are no longer owned. The rest may be committed again.
    """

    def __init__(self, message: str, partitions: frozenset[tuple[str, int]] = frozenset()) -> None:
        super().__init__(message)
        self.partitions = partitions


class TransportUnavailable(MessagingException):
    """The log cannot be reached or is locked at the moment."""

    retriable = True


class LogUnusable(MessagingException):
    """The log is there and cannot be used: corrupt, foreign, newer, full or read-only."""


class TopicNotFound(MessagingException):
    """The log has no topic of that name."""


class GroupBusy(MessagingException):
    """A group was to be changed while it has live members."""

    retriable = True


class InvalidTarget(MessagingException, ValueError):
    """A target does not say where to."""

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
    """The executor asked for does not exist here."""

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
