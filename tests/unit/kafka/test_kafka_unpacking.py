"""What kafka-python opens of a compressed batch, and what it is kept from opening."""

import gzip
from typing import Any

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from notifier_kafka_drivers.kafka.clients import kafka_python_unpacking as unpacking

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
SMALL, LARGE = 1_000, 10_000_000


def batch(codec: str, *values: bytes) -> DefaultRecordBatch:
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
    return DefaultRecordBatch(bytes(builder.build()))


def values(made: Any) -> list[bytes]:
    return [record.value for record in made]


@pytest.mark.parametrize("codec", CODECS)
def test_what_stays_within_the_bound_is_opened(codec: str) -> None:
    content = [b"%d" % n * 100 for n in range(100)]
    with unpacking.bounded(LARGE):
        assert values(batch(codec, *content)) == content


@pytest.mark.parametrize("codec", CODECS)
def test_what_opens_to_more_is_refused_and_says_where_to_go_on(codec: str) -> None:
    made = batch(codec, b"", b"x" * LARGE, b"")
    with unpacking.bounded(LARGE), pytest.raises(unpacking.Oversized, match=f"more than {LARGE} ") as raised:
        values(made)
    assert raised.value.following == 3


@pytest.mark.parametrize("codec", CODECS)
def test_no_more_is_opened_than_it_takes_to_know(codec: str) -> None:
    packed = bytes(batch(codec, b"x" * LARGE)._buffer)[DefaultRecordBatch.HEADER_STRUCT.size :]
    assert len(unpacking._CODECS[CODECS[codec]](packed, SMALL)) == SMALL


@pytest.mark.parametrize("codec", CODECS)
def test_who_asked_for_no_bound_has_none(codec: str) -> None:
    assert values(batch(codec, b"x" * LARGE)) == [b"x" * LARGE]


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
    with unpacking.bounded(LARGE):
        values(made)


def test_a_gzip_stream_may_have_several_members() -> None:
    packed = gzip.compress(b"a" * 10) + gzip.compress(b"b" * 10)
    assert unpacking._CODECS[CODECS["gzip"]](packed, SMALL) == b"a" * 10 + b"b" * 10
    assert unpacking._CODECS[CODECS["gzip"]](packed, 15) == b"a" * 10 + b"b" * 5


def test_snappy_may_come_bare() -> None:
    import snappy

    assert unpacking._CODECS[CODECS["snappy"]](snappy.compress(b"a" * 100), SMALL) == b"a" * 100
