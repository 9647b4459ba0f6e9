"""The channels that put notifications on the bus."""

from collections.abc import Sequence

from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.contract.driver import Headers, make_record
from notifier_kafka.notification import Notification
from notifier_kafka.publishing.channels.channel import Channel, Sending
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.wire import codec, topic_names


class MessagingChannel(Channel):
    """Sends in oslo.messaging's format. Its 1.0 and 2.0 are the same bytes on Kafka."""

    def __init__(self, conf: cfg.ConfigOpts, topics: Sequence[str], transport: NotificationTransport) -> None:
        super().__init__(conf, topics, transport)
        self._form = self._choose_form(conf)
        self._bus_topics: dict[str, tuple[str, ...]] = {}

    def _choose_form(self, conf: cfg.ConfigOpts) -> codec.Form:
        return "envelope" if options.notifications(conf).envelope else "flat"

    def send(self, notifications: Sequence[Notification], how: Sending) -> None:
        retry, find_key, waiter, transaction = how
        encode, form, publish = codec.encode, self._form, self.transport.publish
        spelled = self._bus_topics
        # All of them before the first is handed over: one that has no form stops them all. Plain tuples
        # meanwhile, which Python's collector looks at once.
        records: list[tuple[str, bytes, bytes | None, Headers]] = []
        for notification in notifications:
            key = find_key(notification)
            value, headers = encode(notification, form, key)
            for topic in spelled.get(notification.priority) or self._spell(notification.priority):
                records.append((topic, value, key, headers))  # noqa: PERF401 - a generator for one costs more
        for record in map(make_record, records):
            if transaction is None:
                publish(record, retry, waiter)
            else:
                transaction.offer(record)

    def _spell(self, priority: str) -> tuple[str, ...]:
        host = self.transport.driver.virtual_host
        spelled = tuple(topic_names.bus_topic(topic, priority, host) for topic in self.topics)
        self._bus_topics[priority] = spelled
        return spelled


class CloudEventsChannel(MessagingChannel):
    """Sends CloudEvents 1.0, binary or structured."""

    def _choose_form(self, conf: cfg.ConfigOpts) -> codec.Form:
        structured = options.notifications(conf).cloudevents_mode == "structured"
        return "cloudevents-structured" if structured else "cloudevents-binary"
