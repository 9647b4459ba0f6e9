"""The size of a record."""

import pytest

from notifier_kafka.contract import record_size
from notifier_kafka.contract.driver import Record


@pytest.mark.parametrize(
    ("record", "size"),
    [
        (Record("topic", None, None, ()), 0),
        (Record("topic", b"12345", None, ()), 5),
        (Record("topic", b"12345", b"key", (("name", b"content"),)), 5 + 3 + 4 + 7),
    ],
)
def test_a_size_is_that_of_value_key_and_headers(record: Record, size: int) -> None:
    assert record_size.size_in_bytes(record) == size
