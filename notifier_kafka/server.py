"""oslo.messaging's module ``server``: the errors that programs written for it import from there."""

from notifier_kafka.errors import ExecutorLoadFailure, MessagingServerError, ServerListenError, TaskTimeout

__all__ = ["ExecutorLoadFailure", "MessagingServerError", "ServerListenError", "TaskTimeout"]
