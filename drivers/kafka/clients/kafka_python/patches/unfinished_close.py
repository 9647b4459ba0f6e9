"""Closes what kafka-python does not close to the end.

Waits for: nothing, neither defect is reported upstream yet. Pull request 3108, which 3.0.12 has, is about
a close that takes too long when the brokers are away.
"""

from typing import Any

from kafka import errors as kafka_errors


def close_net_client(client: Any) -> None:
    """Close a network client, also one whose thread could not start, as at an interpreter's exit."""
    loop = client._net
    if loop._io_thread is not None and loop._io_thread.ident is None:
        loop._io_thread = None
    client.close()


def close_producer(producer: Any, timeout_seconds: float) -> None:
    """Close a producer, whatever it still has to send."""
    try:
        producer.close(timeout=timeout_seconds)
    except kafka_errors.KafkaTimeoutError:
        # It stops half-way then: its thread goes on, and its destructor would close it again.
        producer._sender.force_close()
        producer._closed = True
