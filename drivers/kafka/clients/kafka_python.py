"""kafka-python behind the seam; each role of it is in a module beside this one."""

from collections.abc import Sequence

from kafka import codec

from notifier_kafka.driver import Limits, OnFailure, Partition, Publisher
from notifier_kafka.errors import ConfigurationError
from notifier_kafka.outbox import Outbox

from . import client
from .kafka_python_admin import Admin
from .kafka_python_consumer import Consumer
from .kafka_python_errors import COMPRESSION
from .kafka_python_link import refuse_unknown
from .kafka_python_log import quieten
from .kafka_python_reader import Reader
from .kafka_python_sender import Sender
from .kafka_python_transactor import Transactor

FOREVER = str(2**31 - 1)
LIBRARIES = {"snappy": codec.has_snappy, "lz4": codec.has_lz4, "zstd": codec.has_zstd}


class KafkaPython:
    """The client library, as the driver knows it."""

    def __init__(self, given: client.Properties) -> None:
        self._common = dict(given)
        refuse_unknown(given)
        quieten(given)

    def publisher(
        self, given: client.Properties, on_failure: OnFailure, limits: Limits, restore: client.Restore
    ) -> Publisher:
        """Its ``send`` may block for metadata and its buffer has no bound: both are the outbox's."""
        kind = given.get("compression.type", "none")
        if not LIBRARIES.get(kind, lambda: True)():
            raise ConfigurationError(f"[drivers_kafka] compression = {kind}: {COMPRESSION}")
        config = {**self._common, **given}
        if limits.retry < 0:
            config["delivery.timeout.ms"] = FOREVER
        sender = Sender(config, restore, limits.retry)
        outbox = Outbox(sender.deliver, on_failure, limits, sender.end)
        sender.outbox = outbox
        return outbox

    def transactor(self, given: client.Properties) -> Transactor:
        return Transactor({**self._common, **given})

    def consumer(
        self, given: client.Properties, topics: Sequence[str], place: client.Place | None
    ) -> Consumer:
        if given.get("group.protocol", "classic") != "classic":
            raise ConfigurationError(
                "[drivers_kafka] group_protocol = consumer: kafka-python knows only classic; "
                "install notifier-kafka[confluent]"
            )
        return Consumer({**self._common, **given}, topics, place)

    def reader(self, given: client.Properties, partition: Partition, offset: int) -> Reader:
        return Reader({**self._common, **given}, partition, offset)

    def admin(self) -> Admin:
        return Admin(self._common)
