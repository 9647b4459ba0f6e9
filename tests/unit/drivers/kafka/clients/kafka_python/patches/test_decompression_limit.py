"""What kafka-python opens of a compressed batch, and what it is kept from opening."""

import gzip
import random
import subprocess
import sys
import types
import zlib
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from notifier_kafka_drivers.kafka.clients.kafka_python.patches import decompression_limit as unpacking

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
SMALL, LARGE = 1_000, 10_000_000


def packed_batch(codec: str, *values: bytes) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**31 - 1,
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=0, key=b"k", value=value, headers=[])
    return bytes(builder.build())


def batch(codec: str, *values: bytes) -> unpacking.LimitedBatch:
    return unpacking.LimitedBatch(packed_batch(codec, *values), LARGE)


def values(made: Any) -> list[bytes]:
    return [record.value for record in made]


@pytest.mark.parametrize("codec", CODECS)
def test_what_stays_within_the_bound_is_opened(codec: str) -> None:
    content = [b"%d" % n * 100 for n in range(100)]
    assert values(batch(codec, *content)) == content


@pytest.mark.parametrize("codec", CODECS)
def test_what_opens_to_more_is_refused_and_says_where_to_go_on(codec: str) -> None:
    made = batch(codec, b"", b"x" * LARGE, b"")
    with pytest.raises(unpacking.BatchTooLarge, match=f"more than {LARGE} ") as raised:
        values(made)
    assert raised.value.following == 3


@pytest.mark.parametrize("codec", CODECS)
def test_no_more_is_opened_than_it_takes_to_know(codec: str) -> None:
    packed = bytes(batch(codec, b"x" * LARGE)._buffer)[DefaultRecordBatch.HEADER_STRUCT.size :]
    assert len(unpacking._CODECS[CODECS[codec]](packed, SMALL)) == SMALL


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_the_library_s_own_has_no_bound(codec: str) -> None:
    assert values(DefaultRecordBatch(packed_batch(codec, b"x" * LARGE))) == [b"x" * LARGE]


def test_the_library_s_own_classes_are_as_they_were() -> None:
    program = """
from kafka.record.default_records import DefaultRecordBatch as Batch
before = dict(vars(Batch))
from notifier_kafka_drivers.kafka.clients.kafka_python import client
assert dict(vars(Batch)) == before
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_that_of_one_consumer(codec: str) -> None:
    consumers = [types.SimpleNamespace(_fetcher=new_fetcher()) for _ in range(2)]
    unpacking.set_limit(consumers[0], LARGE)
    data = packed_batch(codec, b"before") + packed_batch(codec, b"x" * LARGE)
    limited, unlimited = (
        consumer._fetcher.PartitionRecords(0, TopicPartition("t", 0), MemoryRecords(data))
        for consumer in consumers
    )
    assert [len(record.value) for record in unlimited.take()] == [6, LARGE]
    assert [record.value for record in limited.take()] == [b"before"]
    with pytest.raises(unpacking.BatchTooLarge):
        limited.take()


def new_fetcher() -> Fetcher:
    """One without a client, which needs none to open what was fetched."""
    return Fetcher.__new__(Fetcher)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_damage_is_an_error(codec: str, kept: float) -> None:
    packed = bytes(batch(codec, bytes(range(256)) * 100)._buffer)[DefaultRecordBatch.HEADER_STRUCT.size :]
    damaged = packed[: int(len(packed) * kept)] or b"\xff" * len(packed)
    with pytest.raises(Exception, match=r"\w"):
        values_of(codec, damaged)


def values_of(codec: str, packed: bytes) -> None:
    made = batch(codec, b"")
    made._buffer = bytes(made._buffer)[: DefaultRecordBatch.HEADER_STRUCT.size] + packed
    values(made)


def test_a_gzip_stream_may_have_several_members() -> None:
    packed = gzip.compress(b"a" * 10) + gzip.compress(b"b" * 10)
    assert unpacking._CODECS[CODECS["gzip"]](packed, SMALL) == b"a" * 10 + b"b" * 10
    assert unpacking._CODECS[CODECS["gzip"]](packed, 15) == b"a" * 10 + b"b" * 5


class Counting:
    """zlib's own, and how many bytes were handed to it: it copies what lies behind a member."""

    fed = 0

    def __init__(self, wbits: int) -> None:
        self._inner = INFLATE(wbits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def decompress(self, data: bytes, most: int) -> bytes:
        Counting.fed += len(data)
        return self._inner.decompress(data, most)


INFLATE = zlib.decompressobj


def test_twice_as_many_empty_members_cost_twice_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zlib, "decompressobj", Counting)
    counts = []
    for members in (5_000, 10_000):
        Counting.fed = 0
        packed = gzip.compress(b"") * members + gzip.compress(b"end")
        assert unpacking._CODECS[CODECS["gzip"]](packed, SMALL) == b"end"
        counts.append(Counting.fed)
    assert counts[1] < 2.2 * counts[0]


@pytest.mark.parametrize("size", [10, 16 * 1024, 100_000])
def test_a_gzip_stream_may_end_anywhere_but_within_a_member(size: int) -> None:
    content = random.Random(1).randbytes(size)
    member = gzip.compress(content)
    opened = unpacking._CODECS[CODECS["gzip"]](member * 3, LARGE)
    assert opened == content * 3
    for cut in (1, 8, 16 * 1024):
        if cut < len(member):
            with pytest.raises(EOFError, match="gzip stream"):
                unpacking._CODECS[CODECS["gzip"]]((member * 3)[:-cut], LARGE)


def test_snappy_may_come_bare() -> None:
    import snappy

    assert unpacking._CODECS[CODECS["snappy"]](snappy.compress(b"a" * 100), SMALL) == b"a" * 100
