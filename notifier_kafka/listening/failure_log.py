"""Log lines about endpoints that raise, with all that is needed to find the notification again."""

import logging
from collections import Counter
from collections.abc import Sequence

from notifier_kafka.contract.driver import Delivery
from notifier_kafka.listening.dispatcher import Verdict
from notifier_kafka.listening.requeue import Requeue
from notifier_kafka.notification import Notification

LOG = logging.getLogger(__name__)


class FailureLog:
    """Logs each error that an endpoint raised once, with its traceback. Thread-safe."""

    def __init__(self, requeue: Requeue, max_attempts: int) -> None:
        self._requeue = requeue
        self._max_attempts = max_attempts

    def log_batch(
        self,
        deliveries: Sequence[Delivery],
        notifications: Sequence[Notification],
        verdicts: Sequence[Verdict],
    ) -> None:
        """Log the failures among ``verdicts``. One error may be the verdict of a whole list."""
        sizes = Counter(id(verdict.error) for verdict in verdicts)
        logged: set[int] = set()
        for delivery, notification, verdict in zip(deliveries, notifications, verdicts, strict=True):
            if verdict.error is None:
                continue
            error = id(verdict.error)
            is_last = self._requeue.failures(delivery) + 1 >= self._max_attempts
            if error not in logged:
                self.log(delivery, notification, verdict, is_last=is_last, others=sizes[error] - 1)
            elif is_last:
                self.log(delivery, notification, verdict, is_last=True, traceback=False)
            logged.add(error)

    def log(
        self,
        delivery: Delivery,
        notification: Notification,
        verdict: Verdict,
        *,
        is_last: bool,
        others: int = 0,
        traceback: bool = True,
    ) -> None:
        """Log one failure; ``is_last`` if it makes the notification a dead letter."""
        requeue = self._requeue
        topic, number, offset = requeue.origin(delivery)
        LOG.error(
            "An endpoint raised %s: event type %s, message id %s, topic %s partition %d offset %d, "
            "group %s, attempt %d (failure %d of %d)%s; %s",
            type(verdict.error).__name__,
            _printable(notification.event_type),
            _printable(notification.message_id),
            _printable(topic),
            number,
            offset,
            requeue.group,
            requeue.attempts(delivery) + verdict.retries + 1,
            requeue.failures(delivery) + verdict.failures + 1,
            self._max_attempts,
            f", and {others} more of its list" if others else "",
            f"it becomes a dead letter on {requeue.dead_letter_topic}" if is_last else "it is tried again",
            exc_info=verdict.error if traceback else None,
        )


def _printable(text: object) -> str:
    # A publisher chose the text: with a line break it could forge a line of the log.
    shown = str(text)
    return shown if shown.isprintable() else ascii(shown)
