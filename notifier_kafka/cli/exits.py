"""Exit codes of the command line, and which error ends in which."""

import enum

from notifier_kafka import errors


class Exit(enum.IntEnum):
    """What a command's exit code says to the script that ran it.

    USAGE is also for a topic or group that is not there, and UNREACHABLE for what the log
    refuses at the moment, such as to reset a group that has members.
    """

    OK = 0
    INTERNAL = 1
    USAGE = 2
    UNREACHABLE = 3
    PARTIAL = 4
    CONFIGURATION = 5
    MISSING_EXTRA = 6
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class UsageError(errors.MessagingException):
    """The arguments of a command make no sense."""


class Partial(errors.MessagingException):
    """A command did some of what it was asked for, and not the rest."""


class CalledOff(errors.MessagingException):
    """The person at the terminal said no; it ends like Ctrl-C at the question."""


# The first that fits decides, so a class stands before its base.
_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (UsageError, Exit.USAGE),
    (Partial, Exit.PARTIAL),
    (CalledOff, Exit.INTERRUPTED),
    (errors.EncodeError, Exit.USAGE),
    (errors.InvalidTarget, Exit.USAGE),
    (errors.TopicNotFound, Exit.USAGE),
    (errors.DriverNotFound, Exit.CONFIGURATION),
    (errors.DriverLoadFailure, Exit.MISSING_EXTRA),
    (errors.ConfigurationError, Exit.CONFIGURATION),
    (errors.DeliveryFailed, Exit.UNREACHABLE),
    (errors.MessagingTimeout, Exit.UNREACHABLE),
    (errors.TransportUnavailable, Exit.UNREACHABLE),
    (errors.LogUnusable, Exit.UNREACHABLE),
    (errors.ServerListenError, Exit.UNREACHABLE),
    (errors.GroupBusy, Exit.UNREACHABLE),
    (errors.MessagingException, Exit.INTERNAL),
    (KeyboardInterrupt, Exit.INTERRUPTED),
    (BrokenPipeError, Exit.BROKEN_PIPE),
)


# What these wrap says more than that something was not delivered or could not start.
_WRAPPERS = (errors.DeliveryFailed, errors.ServerListenError)


def code(error: BaseException) -> Exit:
    """Find the exit code for an error."""
    if isinstance(error, _WRAPPERS) and isinstance(error.__cause__, errors.MessagingException):
        return code(error.__cause__)
    return next((found for kind, found in _CODES if isinstance(error, kind)), Exit.INTERNAL)
