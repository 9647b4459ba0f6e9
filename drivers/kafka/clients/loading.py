"""Finds the client library by its entry point, so that another distribution may bring one."""

import warnings
from importlib import metadata, util
from typing import cast

from notifier_kafka.errors import DriverLoadFailure, DriverNotFound

from .protocol import Client

NAMESPACE = "notifier_kafka.kafka_clients"
CONFLUENT = "confluent-kafka"
KAFKA_PYTHON = "kafka-python"


def load(name: str) -> type[Client]:
    """Return the class of a client library; ``auto`` is confluent-kafka where installed."""
    if name == "auto":
        name = CONFLUENT if util.find_spec("confluent_kafka") else KAFKA_PYTHON
    found = {entry.name: entry for entry in metadata.entry_points(group=NAMESPACE)}
    if name not in found:
        raise DriverNotFound(
            name, f"no such Kafka client: [drivers_kafka] client is auto or one of {', '.join(sorted(found))}"
        )
    try:
        with warnings.catch_warnings():
            # kafka-python reads its schemas in a way that Python 3.11 and 3.12 deprecate, and 3.13 does not.
            warnings.simplefilter("ignore", DeprecationWarning)
            return cast(type[Client], found[name].load())
    except ImportError as error:
        what = f"notifier-kafka[{','.join(found[name].extras)}]" if found[name].extras else error.name
        raise DriverLoadFailure(name, f"{error}; install it with: pip install '{what}'") from error
