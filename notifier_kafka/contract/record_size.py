"""The size of a record, as outboxes, limits and queues count it."""

from notifier_kafka.contract.driver import Record


def size_in_bytes(record: Record) -> int:
    """Count the bytes of value, key and headers, without the log's framing and compression."""
    _, value, key, headers = record
    size = len(value) if value else 0
    if key:
        size += len(key)
    for name, content in headers:
        size += len(name) + len(content)
    return size
