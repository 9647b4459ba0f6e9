"""Real brokers for the tests of this directory."""

# By import: only the conftest of the top directory may name plugins.
from notifier_kafka.testing.clusters import kafka_cluster, kafka_three, make_kafka_cluster

__all__ = ["kafka_cluster", "kafka_three", "make_kafka_cluster"]
