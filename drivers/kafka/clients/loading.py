"""Finds the client library by its entry point, so that another distribution may bring one."""

import warnings
from importlib import util
from typing import cast

from notifier_kafka.contract import plugins
from notifier_kafka.errors import DriverNotFound

from .protocol import Client

NAMESPACE = "notifier_kafka.kafka_clients"
CONFLUENT = "confluent-kafka"
KAFKA_PYTHON = "kafka-python"


def load(name: str) -> type[Client]:
    """Return the class of a client library; ``auto`` is confluent-kafka where installed."""
    if name == "auto":
        name = CONFLUENT if util.find_spec("confluent_kafka") else KAFKA_PYTHON
    with warnings.catch_warnings():
        # kafka-python reads its schemas in a way that Python 3.11 and 3.12 deprecate, and 3.13 does not.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return cast(type[Client], plugins.load(NAMESPACE, name))
        except DriverNotFound:
            known = ", ".join(plugins.names(NAMESPACE))
            text = f"no such Kafka client: [drivers_kafka] client is auto or one of {known}"
            raise DriverNotFound(name, text) from None
