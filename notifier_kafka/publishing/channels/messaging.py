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
    """Sends in oslo.messaging's format. Its versions 1.0 and 2.0 are the same bytes on Kafka."""

    def __init__(self, conf: cfg.ConfigOpts, topics: Sequence[str], transport: NotificationTransport) -> None:
        super().__init__(conf, topics, transport)
        self._form = self._choose_form(conf)
        self._bus_topics: dict[str, tuple[str, ...]] = {}

    def _choose_form(self, conf: cfg.ConfigOpts) -> codec.Form:
        return "envelope" if options.notifications(conf).envelope else "flat"

    def send(self, notifications: Sequence[Notification], how: Sending) -> None:
        retry, find_key, waiter, transaction = how
        encode, form, publish = codec.encode, self._form, self.transport.publish
        bus_topics = self._bus_topics
        # All are encoded before the first is sent: one that cannot be encoded stops them all. Plain
        # tuples until then: the garbage collector looks at them only once.
        records: list[tuple[str, bytes, bytes | None, Headers]] = []
        for notification in notifications:
            key = find_key(notification)
            value, headers = encode(notification, form, key)
            for topic in bus_topics.get(notification.priority) or self._name_topics(notification.priority):
                records.append((topic, value, key, headers))  # noqa: PERF401 - a generator for one costs more
        for record in map(make_record, records):
            if transaction is None:
                publish(record, retry, waiter)
            else:
                transaction.offer(record)

    def _name_topics(self, priority: str) -> tuple[str, ...]:
        host = self.transport.driver.virtual_host
        names = tuple(topic_names.bus_topic(topic, priority, host) for topic in self.topics)
        self._bus_topics[priority] = names
        return names


class CloudEventsChannel(MessagingChannel):
    """Sends CloudEvents 1.0, binary or structured."""

    def _choose_form(self, conf: cfg.ConfigOpts) -> codec.Form:
        structured = options.notifications(conf).cloudevents_mode == "structured"
        return "cloudevents-structured" if structured else "cloudevents-binary"
