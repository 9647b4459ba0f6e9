"""One poll of kafka-python, and what is done about a batch that cannot or must not be unpacked.

A join ends on the library's own thread, also between two steps of ours: what it takes from us
is gone from the library's dictionary then, and each of its calls raises for that.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafka import TopicPartition

from ..errors import translate
from .decompression_limit import Oversized, bounded

LOG = logging.getLogger(__name__)


def polled(consumer: Any, limit: int, timeout_ms: int) -> Mapping[TopicPartition, Sequence[Any]]:
    """Poll, and let go of what cannot be unpacked: the next poll fetches it again, and fails again.

    The library would look for more of it for ever, and its poll not return.
    """
    fetcher = consumer._fetcher  # noqa: SLF001
    if fetcher._next_in_line_exception_metadata is not None:  # noqa: SLF001
        _let_go(fetcher)
    try:
        with bounded(consumer.config["fetch_max_bytes"]):
            found: Mapping[TopicPartition, Sequence[Any]] = consumer.poll(timeout_ms, max_records=limit)
    except Oversized as error:
        _pass_over(consumer, error)
        return {}
    except Exception as error:  # noqa: BLE001 - each codec has errors of its own
        _let_go(fetcher)
        if isinstance(error, KeyError) and any(isinstance(each, TopicPartition) for each in error.args):
            return {}  # it was taken from us in there; the others come with the next poll
        raise translate(error, "poll") from None
    return found


def each_assigned(call: Callable[[TopicPartition], None], partitions: Iterable[TopicPartition]) -> None:
    """Pause or resume what is still assigned."""
    for partition in partitions:
        with contextlib.suppress(KeyError):
            call(partition)


def go_to(consumer: Any, partition: TopicPartition, offset: int) -> None:
    """Go on from an offset, if the partition is still assigned."""
    # It looks, and says one of these; or it was taken from us after that.
    with contextlib.suppress(ValueError, KeyError):
        consumer.seek(partition, offset)


def _pass_over(consumer: Any, error: Oversized) -> None:
    """Go on behind a batch that must not be opened: it would be the same for ever."""
    unpacked = consumer._fetcher._next_partition_records  # noqa: SLF001
    topic, number = at = unpacked.topic_partition
    last = error.following - 1
    LOG.error("Passed over %s[%d] from %d to %d: %s", topic, number, unpacked.next_fetch_offset, last, error)
    unpacked.drain()
    go_to(consumer, at, error.following)


def _let_go(fetcher: Any) -> None:
    unpacked = fetcher._next_partition_records  # noqa: SLF001
    if unpacked is not None:
        unpacked.drain()
