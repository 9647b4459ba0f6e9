"""Exit codes of the command line, and which error ends in which."""

import enum

from notifier_kafka import errors


class Exit(enum.IntEnum):
    """What a command's exit code tells the script that ran it.

    USAGE is also for a topic or group that does not exist. UNREACHABLE is also for what the log
    refuses for now, such as resetting a group that has members.
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
    """A command did only a part of what it was asked for."""


class Declined(errors.MessagingException):
    """The person at the terminal answered no. It ends like Ctrl-C at the question."""


# The first match decides, so a class stands before its base.
_EXITS: tuple[tuple[type[BaseException], Exit], ...] = (
    (UsageError, Exit.USAGE),
    (Partial, Exit.PARTIAL),
    (Declined, Exit.INTERRUPTED),
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


# The cause of these says more than they do.
_WRAPPERS = (errors.DeliveryFailed, errors.ServerListenError)


def exit_code(error: BaseException) -> Exit:
    """Find the exit code for an error."""
    if isinstance(error, _WRAPPERS) and isinstance(error.__cause__, errors.MessagingException):
        return exit_code(error.__cause__)
    return next((code for kind, code in _EXITS if isinstance(error, kind)), Exit.INTERNAL)
