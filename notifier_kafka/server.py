"""The name under which programs written for oslo.messaging also find the errors of listeners."""

from notifier_kafka.errors import ExecutorLoadFailure, MessagingServerError, ServerListenError, TaskTimeout

__all__ = ["ExecutorLoadFailure", "MessagingServerError", "ServerListenError", "TaskTimeout"]
