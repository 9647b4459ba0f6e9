"""Decoding on the JVM agrees with the codec: same records accepted, same members, same reasons."""

import datetime
import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DecodeError
from notifier_kafka.wire import codec
from spark_sinks.decode import full
from tests.shared.spark import corpus

LOGGED = datetime.datetime(2026, 11, 18, 8, tzinfo=datetime.UTC)


def frame_of(spark: SparkSession, records: list[corpus.Raw]) -> DataFrame:
    rows = [("t", 0, offset, LOGGED, None, *record) for offset, record in enumerate(records)]
    return spark.createDataFrame(rows, full.RAW_SCHEMA)


def read(spark: SparkSession, records: list[corpus.Raw]) -> list[Row]:
    frame = frame_of(spark, records)
    columns = {name: F.col(name).cast("string") for name in ("payload", "context")}
    columns["kind"] = F.schema_of_variant("payload")
    found: list[Row] = full.decode(frame).withColumns(columns).orderBy("offset").collect()
    return found


def value_of(row: Row) -> Any:
    text = row.payload
    return text if row.kind == "STRING" or text is None else json.loads(text)


def same(ours: Any, theirs: Any) -> bool:
    """Compare JSON values: VARIANT keeps 38 digits of a number, and beyond them a double."""
    if repr(ours) == repr(theirs):  # which goes deeper than this function does
        return True
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(same(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, int | float) and not isinstance(theirs, bool):
        try:
            return float(ours) == float(theirs)
        except OverflowError:
            return ours == "Infinity" or float(ours) == float("inf")
    return bool(ours == theirs) and type(ours) is type(theirs)


def disagreement(row: Row, raw: corpus.Raw) -> str | None:
    value, headers = raw
    try:
        expected = codec.decode(Record("t", value, None, headers))
    except DecodeError as error:
        return None if row.reason == str(error) else f"codec: {error}; here: {row.reason}"
    if row.reason is not None:
        return f"codec: {expected}; here: {row.reason}"
    texts = (row.message_id, row.publisher_id, row.event_type, row.priority)
    if texts != (expected.message_id, expected.publisher_id, expected.event_type, expected.priority):
        return f"codec: {expected}; here: {texts}"
    if not same(value_of(row), expected.payload):
        return f"codec: {expected.payload}; here: {row.payload}"
    context = json.loads(row.context or "null") or {}
    return None if same(context, expected.context) else f"codec: {expected.context}; here: {context}"


def test_the_codec_agrees(spark: SparkSession) -> None:
    records = corpus.everything()
    rows = read(spark, records)
    pairs = zip(rows, records, strict=True)
    assert [(text, *raw) for row, raw in pairs if (text := disagreement(row, raw))] == []
    # The mutilations are no test when they leave nothing whole, or everything.
    assert 300 < sum(row.reason is None for row in rows) < len(rows) - 300


def flat(timestamp: str | None) -> corpus.Raw:
    return json.dumps({"priority": "INFO", "timestamp": timestamp}).encode(), ()


def event(time: str) -> corpus.Raw:
    return corpus.binary({"specversion": "1.0", "id": "m", "type": "t", "source": "s", "time": time})


DATED = [
    (flat("2026-11-18 07:50:58.485407"), "2026-11-18 07:50:58.485407"),
    (flat("2026-11-18 07:50:58"), "2026-11-18 07:50:58"),
    (flat("2026-11-18T07:50:58+05:30"), "2026-11-18 02:20:58"),
    (event("2026-11-18T07:50:58.5Z"), "2026-11-18 07:50:58.500000"),
    (event("2026-11-18T07:50:58-02:00"), None),
    (flat("2026-11-18 09:00:00"), "2026-11-18 09:00:00"),
    (flat("2026-11-18 09:00:00.000001"), None),
    (flat("2026-10-19 08:00:00"), "2026-10-19 08:00:00"),
    (flat("2026-10-19 07:59:59"), None),
    (flat("9999-99-99 00:00:00"), None),
    (flat("+294247-01-10 04:00:54"), None),
    (flat("07:50:58"), None),
    (flat("T07:50:58"), None),
    (flat("now"), None),
    (flat(""), None),
    (flat(None), None),
]


def test_the_time_is_the_events_unless_it_is_absurd(spark: SparkSession) -> None:
    """An hour ahead of the record and thirty days behind it are the last that count."""
    rows = read(spark, [raw for raw, _ in DATED])
    logged = LOGGED.replace(tzinfo=None)
    assert [(row.time, row.misdated) for row in rows] == [
        (datetime.datetime.fromisoformat(text) if text else logged, text is None) for _, text in DATED
    ]


def test_the_good_and_the_malformed_are_all(spark: SparkSession) -> None:
    decoded = full.decode(frame_of(spark, [flat(None), (b"{", ()), (None, ()), flat(None)]))
    assert [row.offset for row in full.notifications(decoded).collect()] == [0, 3]
    assert [tuple(row) for row in full.malformed(decoded).drop("logged").collect()] == [
        ("t", 0, 1, "not JSON"),
        ("t", 0, 2, "a tombstone"),
    ]


def test_where_the_codec_reads_more(spark: SparkSession) -> None:
    """The two known differences, so that nobody is surprised: both are malformed here."""
    digits = b'{"priority": "INFO", "payload": ' + b"1" * 1001 + b"}"
    large = b'{"priority": "INFO", "payload": "' + b"x" * full.MAX_VALUE_BYTES + b'"}'
    for value in (digits, large):
        assert codec.decode(Record("t", value)).priority == "INFO"
    reasons = [row.reason for row in read(spark, [(digits, ()), (large, ())])]
    assert reasons == ["not JSON", "larger than 8 MiB"]


@pytest.mark.long
def test_large_and_deep_values_end_nothing(spark: SparkSession) -> None:
    """Many at once, just below the bounds, in one task."""
    text = b'{"priority": "INFO", "payload": "' + b"x\\u00e9[" * 120_000 + b'"}'
    lists = b'{"priority": "INFO", "payload": [' + b"[],{}," * 120_000 + b"1]}"
    deep = b'{"priority": "INFO", "payload": ' + b'{"a":[' * 249 + b"1" + b"]}" * 249 + b"}"
    deeper = b"[" * 3_000_000
    rows = read(spark, [(value, ()) for value in (text, lists, deep, deeper, text, lists)])
    assert [row.reason for row in rows] == [None, None, None, "not JSON", None, None]
