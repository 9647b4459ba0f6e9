"""The short way yields what the long way does, and takes nothing that is not ours."""

import datetime
import itertools
import random
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.contract.driver import Partition, Span
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec, json_library
from spark_sinks.decode import fast, full
from spark_sinks.engine import aggregate, column_pruning, dedupe, durations
from spark_sinks.language import metrics_file
from tests.shared.spark import corpus
from tests.spark import test_decode

CODERS = [codec.Codec(json_library.STANDARD), codec.Codec(json_library.fastest())]
PAYLOADS: list[Any] = [
    {"a": 1},
    None,
    "text",
    {"é": ['🐍 "quoted" \\ / \n', {"b": {}}], "timestamp": "x", "_context": {}},
    {"k": '","timestamp":"2026-11-18 07:50:58.485407","_context":{}}"}'},
    [2**70, 1.5e300, True],
]
FIELDS = (
    "reason",
    "message_id",
    "publisher_id",
    "event_type",
    "priority",
    "timestamp",
    "time",
    "misdated",
    "payload",
)
SENT = Notification("m", "compute.host", "a.b", "INFO", {}, "2026-11-18 07:50:58.485407", {})


def read(spark: SparkSession, records: list[corpus.Raw]) -> tuple[list[Row], list[Row]]:
    """Decode all records by both ways."""
    frame = test_decode.frame_of(spark, records)
    quick = fast.decode(frame)
    slow = full.decode(frame)
    text = F.col("payload").cast("string").alias("payload")
    kept = [name for name in FIELDS if name != "payload"]
    return (
        quick.select("offset", "is_fast", *kept, text).orderBy("offset").collect(),
        slow.select("offset", *kept, text).orderBy("offset").collect(),
    )


def ours() -> list[corpus.Raw]:
    forms: tuple[codec.Form, ...] = ("envelope", "flat")
    return [
        coder.encode(SENT._replace(payload=payload), form)
        for coder in CODERS
        for payload in PAYLOADS
        for form in forms
    ]


def unusual() -> list[corpus.Raw]:
    changes: list[dict[str, Any]] = [
        {"publisher_id": None},
        {"message_id": 'a"b'},
        {"event_type": "a\\b"},
        {"context": {"a": 1}},
        {"timestamp": "2026-11-18 07:50:58"},
        {"timestamp": None},
    ]
    found: list[corpus.Raw] = [CODERS[1].encode(SENT._replace(**change), "envelope") for change in changes]
    value, headers = CODERS[1].encode(SENT, "envelope")
    found.append((value, headers[1:]))
    for name, text in (
        ("event-type", b"other"),
        ("event-type", b"a.\xff"),
        ("message-id", b""),
        ("priority", b"LOUD"),
        ("content-type", b"application/cloudevents+json"),
    ):
        found.append((value, tuple((n, text if n == name else v) for n, v in headers)))
    found.append(
        (value.replace(b"a.b", b"a.\xff"), tuple((n, v.replace(b"a.b", b"a.\xff")) for n, v in headers))
    )
    found += [(value + b" ", headers), (b" " + value, headers), (value[:-1], headers)]
    stamp = SENT.timestamp
    assert stamp
    for other in (
        '2026-11-18","a":"58.485407',
        "2026-11-18 07:50:58.48540\n",
        "\t" + stamp[:-1],
        "x" * len(stamp),
    ):
        found.append((value.replace(stamp.encode(), other.encode()), headers))
    return found


def test_both_ways_agree(spark: SparkSession) -> None:
    mine, others = ours(), unusual()
    quick, slow = read(spark, mine + others + corpus.everything()[:400])
    assert [row.is_fast for row in quick[: len(mine) + len(others)]] == [True] * len(mine) + [False] * len(
        others
    )
    for one, other in zip(quick, slow, strict=True):
        if one.is_fast:
            assert [one[name] for name in FIELDS] == [other[name] for name in FIELDS]


def test_the_order_of_the_headers_may_change(spark: SparkSession) -> None:
    """Records of an earlier release have the message id in another place."""
    value, headers = CODERS[0].encode(SENT, "envelope")
    by_name = dict(headers)
    names = ("content-type", "priority", "message-id", "event-type", "publisher-id")
    orders = [(*names[:2], *rest) for rest in itertools.permutations(names[2:])]
    quick, _ = read(spark, [(value, tuple((name, by_name[name]) for name in order)) for order in orders])
    assert [row.is_fast for row in quick] == [True] * len(orders)
    assert {row.message_id for row in quick} == {"m"}


def test_a_payload_that_is_no_text_is_none(spark: SparkSession) -> None:
    value, headers = CODERS[0].encode(SENT._replace(payload={"a": "é"}), "envelope")
    assert value
    quick, slow = read(spark, [(value.replace(b"\\\\u00e9", b"\xff"), headers)])
    assert (quick[0].is_fast, quick[0].payload, slow[0].reason) == (True, None, "not Unicode text")


def test_the_payload_of_a_fast_record_is_not_checked(spark: SparkSession) -> None:
    """Its payload may be none: it counts then, without one. Nothing else about it may be wrong."""
    chance = random.Random(4)
    damaged: list[corpus.Raw] = []
    for value, headers in ours() * 20:
        assert value
        at = chance.randrange(len(value))
        damaged.append((value[:at] + bytes([chance.choice(b'{}[]",:\\ux\xe9 0')]) + value[at + 1 :], headers))
    quick, slow = read(spark, damaged)
    texts = FIELDS[1:5]
    word = [(one, other) for one, other in zip(quick, slow, strict=True) if one.is_fast]
    assert len(word) > 20
    for one, other in word:
        assert other.reason in (None, "not JSON", "not Unicode text")
        if other.reason is None:
            assert [one[name] for name in texts] == [other[name] for name in texts]


def test_records_of_everything_else_are_left(spark: SparkSession) -> None:
    """A tombstone has neither value nor headers, and a source may yield no list of headers at all."""
    now = datetime.datetime(2026, 11, 18, tzinfo=datetime.UTC)
    frame = spark.createDataFrame([("t", 0, 0, now, None, None, None)], full.RAW_SCHEMA)
    assert [row.is_fast for row in fast.decode(frame).collect()] == [False]


def test_all_code_that_a_fast_record_passes_is_compiled(spark: SparkSession, tmp_path: Path) -> None:
    """Spark does in steps what would be one method of more than a JVM compiles: a third longer for each."""
    spark.createDataFrame([], full.RAW_SCHEMA).write.parquet(str(tmp_path / "raw"))
    wanted = metrics_file.default()
    decoded = fast.decode(spark.read.parquet(str(tmp_path / "raw")), needed=column_pruning.payload(wanted))
    kept = aggregate.prepare(decoded, wanted, F.col("is_fast"), *durations.events(wanted))
    sizes = method_sizes(spark, dedupe.prepare(kept, [Span(Partition("t", 0), 0, 1)]))
    assert len(sizes) == 2
    assert max(sizes) <= int(spark.conf.get("spark.sql.codegen.hugeMethodLimit") or 0)


def method_sizes(spark: SparkSession, frame: DataFrame) -> list[int]:
    """Return the bytes of the largest method that Spark makes for each part of a plan."""
    debug = getattr(getattr(spark._jvm.org.apache.spark.sql.execution.debug, "package$"), "MODULE$")
    parts = debug.codegenStringSeq(frame._jdf.queryExecution().executedPlan())
    return [parts.apply(number)._3().maxMethodCodeSize() for number in range(parts.size())]
