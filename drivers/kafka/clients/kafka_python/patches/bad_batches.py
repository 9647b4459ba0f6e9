"""One poll of kafka-python, and what is done about a batch that cannot or must not be opened.

The library would fetch such a batch again and fail again for ever, and its poll would not return.

A join ends on the library's own thread, also between two steps of ours. A partition that it takes from
us is then missing from the library's dictionary, and each of its calls raises KeyError for it.

Waits for: nothing, neither is reported upstream yet. Issue 718, closed in 2016, was a batch that the
library had compressed twice, with the same effect.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafka import TopicPartition

from ..errors import translate
from .decompression_limit import BatchTooLarge

LOG = logging.getLogger(__name__)


def poll(consumer: Any, limit: int, timeout_ms: int) -> Mapping[TopicPartition, Sequence[Any]]:
    """Poll, and drop a batch that cannot be opened: the next poll fetches it again, and raises again."""
    fetcher = consumer._fetcher
    if fetcher._next_in_line_exception_metadata is not None:
        _drop_batch(fetcher)
    try:
        found: Mapping[TopicPartition, Sequence[Any]] = consumer.poll(timeout_ms, max_records=limit)
    except BatchTooLarge as error:
        _skip_batch(consumer, error)
        return {}
    except Exception as error:  # noqa: BLE001 - each codec has errors of its own
        _drop_batch(fetcher)
        if isinstance(error, KeyError) and any(isinstance(each, TopicPartition) for each in error.args):
            return {}  # the partition was taken from us meanwhile; the others come with the next poll
        raise translate(error, "poll") from None
    return found


def call_for_assigned(call: Callable[[TopicPartition], None], partitions: Iterable[TopicPartition]) -> None:
    """Pause or resume what is still assigned."""
    for partition in partitions:
        with contextlib.suppress(KeyError):
            call(partition)


def seek_if_assigned(consumer: Any, partition: TopicPartition, offset: int) -> None:
    """Go on from an offset, if the partition is still assigned."""
    # ValueError where the library sees that it is not; KeyError where it was taken from us after that.
    with contextlib.suppress(ValueError, KeyError):
        consumer.seek(partition, offset)


def _skip_batch(consumer: Any, error: BatchTooLarge) -> None:
    """Go on behind a batch that must not be opened: it would be the same for ever."""
    batch = consumer._fetcher._next_partition_records
    topic, number = partition = batch.topic_partition
    last = error.following - 1
    LOG.error("Passed over %s[%d] from %d to %d: %s", topic, number, batch.next_fetch_offset, last, error)
    batch.drain()
    seek_if_assigned(consumer, partition, error.following)


def _drop_batch(fetcher: Any) -> None:
    batch = fetcher._next_partition_records
    if batch is not None:
        batch.drain()
