"""The client library kafka-python; each of its roles has a module beside this one."""

from collections.abc import Sequence

from kafka import codec

from notifier_kafka.contract.driver import Limits, OnFailure, Partition, Publisher
from notifier_kafka.contract.outbox import Outbox
from notifier_kafka.errors import ConfigurationError

from .. import protocol
from .admin import Admin
from .connection import refuse_unknown
from .consumer import Consumer
from .errors import COMPRESSION
from .log import quieten
from .publisher import BatchPublisher
from .reader import Reader
from .transactor import Transactor

FOREVER_MS = str(2**31 - 1)
CODECS = {"snappy": codec.has_snappy, "lz4": codec.has_lz4, "zstd": codec.has_zstd}


class KafkaPython:
    """The client library, as the driver knows it."""

    def __init__(self, given: protocol.Properties) -> None:
        self._common = dict(given)
        refuse_unknown(given)
        quieten(given)

    def publisher(
        self, given: protocol.Properties, on_failure: OnFailure, limits: Limits, restore: protocol.Restore
    ) -> Publisher:
        """Make one behind an outbox: ``send`` of kafka-python may block, and its buffer has no limit."""
        kind = given.get("compression.type", "none")
        if not CODECS.get(kind, lambda: True)():
            raise ConfigurationError(f"[drivers_kafka] compression = {kind}: {COMPRESSION}")
        config = {**self._common, **given}
        if limits.retry < 0:
            config["delivery.timeout.ms"] = FOREVER_MS
        sender = BatchPublisher(config, restore, limits.retry)
        outbox = Outbox(sender.deliver, on_failure, limits, sender.end)
        sender.outbox = outbox
        return outbox

    def transactor(self, given: protocol.Properties) -> Transactor:
        return Transactor({**self._common, **given})

    def consumer(
        self, given: protocol.Properties, topics: Sequence[str], start_offsets: protocol.StartOffsets | None
    ) -> Consumer:
        if given.get("group.protocol", "classic") != "classic":
            raise ConfigurationError(
                "[drivers_kafka] group_protocol = consumer: kafka-python has classic only; "
                "install notifier-kafka[confluent]"
            )
        return Consumer({**self._common, **given}, topics, start_offsets)

    def reader(self, given: protocol.Properties, partition: Partition, offset: int) -> Reader:
        return Reader({**self._common, **given}, partition, offset)

    def admin(self) -> Admin:
        return Admin(self._common)
