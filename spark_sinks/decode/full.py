"""Decodes records on the JVM, by columns, as ``notifier_kafka.wire.codec.decode`` does.

It recognises every form for each record: the v2 envelope, the flat object, structured and binary
CloudEvents. The same records are malformed, for the same reasons.
"""

import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.notification import PRIORITIES
from notifier_kafka.wire import cloudevents, codec
from spark_sinks.decode import strict_json
from spark_sinks.decode.clock_tolerance import DEFAULT_TOLERANCE, ClockTolerance
from spark_sinks.decode.strict_json import member, never, text_of, variant_type

RAW_SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
"""The columns of every source."""

MAX_VALUE_BYTES = 8 * 1024 * 1024
"""The most bytes of a value: decoding takes many times as much memory."""

OLDEST_RECORD, NEWEST_RECORD = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (2000, 2100))
"""A record's time outside of these is invalid."""

POSITION = ("topic", "partition", "offset")

# The members of a notification, and their names in CloudEvents.
_TEXTS = {
    "message_id": "id",
    "publisher_id": "source",
    "event_type": "type",
    "timestamp": "time",
    "priority": "priority",
}
_NOBODY = "about:blank"
_REQUIRED = ("specversion", "id", "type", "source")


def decode(raw: DataFrame, clock: ClockTolerance = DEFAULT_TOLERANCE) -> DataFrame:
    """Return a row for each record; malformed ones have a ``reason``.

    Columns: ``topic``, ``partition``, ``offset``, ``logged``, ``reason`` (null for a
    notification), the texts, ``payload`` and ``context`` as VARIANT, and ``time``. That is the
    event's time in UTC. If it is missing or not credible, ``misdated`` is set and ``time`` is the
    record's.
    """
    read = compute_once(_find_object(_parse_values(raw)), *POSITION, "logged", "form", "fault", *_members())
    fields = compute_once(
        read, *POSITION, "logged", _reason().alias("reason"), *_texts(), "payload", "context"
    )
    fields = fields.withColumn("event_time", parsed_timestamp()).withColumn("logged", record_time())
    return fields.select("*", *event_time_columns(clock)).drop("event_time")


def compute_once(frame: DataFrame, *columns: str | Column) -> DataFrame:
    """Select columns so that each is computed only once, whatever later steps do with it.

    Spark's optimizer replaces a column by its expression, for filters always. Ours are large and
    nested: planning a single ``where`` took minutes. The optimizer does not do that for the output
    of a generator, so this is a generator of one row.
    """
    return frame.select(F.inline(F.array(F.struct(*columns))))


def notifications(decoded: DataFrame) -> DataFrame:
    """Return only the notifications."""
    return decoded.where(F.col("reason").isNull()).drop("reason")


def malformed(decoded: DataFrame) -> DataFrame:
    """Return the positions of the malformed records, and the reasons."""
    return decoded.where(F.col("reason").isNotNull()).select(*POSITION, "logged", "reason")


def _parse_values(raw: DataFrame) -> DataFrame:
    """Parse the value, and find the form that the headers announce."""
    text = F.col("value").cast("string")
    has = F.exists("headers", lambda h: h["key"] == "ce_specversion")
    content_type = F.exists(
        "headers",
        lambda h: (
            (h["key"] == "content-type")
            & h["value"].cast("string").startswith(cloudevents.STRUCTURED_TYPE.decode())
        ),
    )
    form = F.when(has, "binary").when(content_type, "structured").otherwise("plain")
    size = F.length("value")
    sound = F.is_valid_utf8(text) & (size <= MAX_VALUE_BYTES)
    return compute_once(
        raw,
        *POSITION,
        F.col("timestamp").alias("logged"),
        "headers",
        size.alias("size"),
        text.alias("text"),
        form.alias("form"),
        F.when(sound, strict_json.parse(text)).alias("wrapped"),
    )


def _find_object(layers: DataFrame) -> DataFrame:
    """Find the object with the members, inside an envelope or not."""
    layers = _parsed(layers, "text", "outer")
    outer = F.col("outer")
    version, message = (member(outer, n) for n in (codec.VERSION_MEMBER, codec.MESSAGE_MEMBER))
    announced = F.col("form") == "structured"
    event = message.isNull()
    for name in _REQUIRED:
        event &= member(outer, name).isNotNull()
    form = (
        F.when(F.col("form") == "binary", "binary")
        .when(announced | event, "structured")
        .when(version.isNotNull(), "envelope")
        .otherwise("flat")
    )
    found = compute_once(
        layers,
        *layers.columns,
        form.alias("shape"),
        text_of(version).alias("version"),
        text_of(message).alias("body"),
    )
    enveloped = F.col("shape") == "envelope"
    body = F.when(enveloped & (F.col("version") == codec.VERSION), F.col("body"))
    kept = [name for name in found.columns if name not in ("form", "shape", "body")]
    found = compute_once(
        found,
        *kept,
        F.col("shape").alias("form"),
        "body",
        body.alias("within"),
        strict_json.parse(body).alias("wrapped"),
    )
    found = _parsed(found, "within", "parsed")
    inner = F.when(F.col("form") == "envelope", F.col("parsed")).otherwise(F.col("outer"))
    found = compute_once(found, *found.drop("parsed", "within").columns, inner.alias("inner"))
    return found.select("*", _object_reason().alias("fault"))


def _parsed(frame: DataFrame, text: str, name: str) -> DataFrame:
    value = strict_json.parsed_value(F.col("wrapped"), F.col(text)).alias(name)
    return compute_once(frame, *frame.drop("wrapped").columns, value)


def _object_reason() -> Column:
    """Return why there is no object with members, null when there is one."""
    text, body, form = F.col("text"), F.col("body"), F.col("form")
    # The outer object of an envelope holds one text: the depth of that text counts.
    enveloped = form == "envelope"
    return (
        F.when(text.isNull(), "a tombstone")
        .when(F.col("size") == 0, "an empty value")
        .when(F.col("size") > MAX_VALUE_BYTES, f"larger than {MAX_VALUE_BYTES >> 20} MiB")
        .when(~F.is_valid_utf8(text), "not Unicode text")
        .when(F.col("outer").isNull(), "not JSON")
        .when(strict_json.has_lone_surrogate(text), "not Unicode text")
        .when(strict_json.is_too_deep(text), _TOO_DEEP)
        .when((form != "binary") & ~_is_object(text), "the value is not a JSON object")
        .when(
            enveloped & (F.coalesce(F.col("version"), F.lit("")) != codec.VERSION),
            f"the envelope's version is not {codec.VERSION}",
        )
        .when(enveloped & body.isNull(), f"the envelope's {codec.MESSAGE_MEMBER} is not text")
        .when(enveloped & F.col("inner").isNull(), "not JSON")
        .when(enveloped & strict_json.has_lone_surrogate(body), "not Unicode text")
        .when(enveloped & strict_json.is_too_deep(body), _TOO_DEEP)
        .when(enveloped & ~_is_object(body), f"the envelope's {codec.MESSAGE_MEMBER} is not a JSON object")
    )


_TOO_DEEP = f"nested beyond {codec.MAX_READ_DEPTH} levels"


def _is_object(text: Column) -> Column:
    return F.ltrim(F.translate(text, "\t\r\n", "   ")).startswith("{")


def _header(name: str) -> Column:
    """Return the text of a CloudEvent's attribute in the headers; the last one wins."""
    found = F.filter("headers", lambda h: (h["key"] == f"ce_{name}") & h["value"].isNotNull())
    return F.try_element_at(found, F.lit(-1))["value"].cast("string")


def _is(form: str) -> Column:
    return F.col("form") == form


def _members() -> list[Column]:
    """Extract the members from the object or the headers, with the problems of each."""
    inner, event = F.col("inner"), _is("binary") | _is("structured")
    made = [_member(name, attribute) for name, attribute in _TEXTS.items()]
    context = F.when(_is("binary"), _header("context")).when(
        _is("structured"), text_of(member(inner, "context"))
    )
    parsed = strict_json.parsed_value(strict_json.parse(context), context)
    payload = F.when(_is("structured"), member(inner, "data")).otherwise(member(inner, "payload"))
    return [
        *made,
        _member("specversion", "specversion"),
        F.when(_is("binary"), F.col("outer")).otherwise(payload).alias("payload"),
        F.when(event, parsed).otherwise(member(inner, "_context")).alias("context"),
        context.alias("context_text"),
        (_is("structured") & member(inner, "data_base64").isNotNull()).alias("base64"),
        (_is("binary") & _has_garbled_header()).alias("garbled"),
    ]


def _member(name: str, attribute: str) -> Column:
    inner = F.col("inner")
    value = F.when(_is("structured"), member(inner, attribute)).otherwise(member(inner, name))
    header = _header(attribute)
    binary = F.struct(header.alias("text"), never().alias("wrong"), header.isNull().alias("absent"))
    wrong = value.isNotNull() & ~variant_type(value).isin("STRING", "VOID")
    # JSON's null is not absent: a CloudEvent without a priority is INFO, one with null has none.
    other = F.struct(text_of(value).alias("text"), wrong.alias("wrong"), value.isNull().alias("absent"))
    return F.when(_is("binary"), binary).otherwise(other).alias(name)


def _has_garbled_header() -> Column:
    return F.exists(
        "headers",
        lambda h: (
            h["key"].startswith("ce_") & h["value"].isNotNull() & ~F.is_valid_utf8(h["value"].cast("string"))
        ),
    )


def _reason() -> Column:
    """Return why a record is not a notification, null when it is one."""
    event = _is("binary") | _is("structured")
    context, context_text = F.col("context"), F.col("context_text")
    reason = F.when(F.col("fault").isNotNull(), F.col("fault"))
    reason = reason.when(F.col("garbled"), "a header of the CloudEvent is not Unicode text")
    reason = reason.when(F.col("base64"), "the CloudEvent's data is not JSON")
    for attribute, column in (("specversion", "specversion"), *((_TEXTS[m], m) for m in _EVENT_TEXTS)):
        missing = event & F.col(column)["text"].isNull()
        reason = reason.when(missing, f"the CloudEvent's {attribute} is missing or not text")
    version = F.col("specversion")["text"]
    reason = reason.when(event & ~version.startswith("1."), "the CloudEvent's version is not 1.x")
    reason = reason.when(context_text.isNotNull() & context.isNull(), "not JSON")
    reason = reason.when(
        context_text.isNotNull() & strict_json.has_lone_surrogate(context_text), "not Unicode text"
    )
    reason = reason.when(context_text.isNotNull() & strict_json.is_too_deep(context_text), _TOO_DEEP)
    wrong = never()
    for name in ("message_id", "publisher_id", "event_type", "timestamp"):
        wrong |= F.col(name)["wrong"]
    reason = reason.when(wrong, "the message id, publisher, event type or timestamp is not text")
    no_object = (
        context.isNotNull() & (variant_type(context) != "VOID") & ~variant_type(context).startswith("OBJECT")
    )
    reason = reason.when(no_object, "the context is not a JSON object")
    reason = reason.when(_priority().isNull(), "no priority, so not a notification")
    return reason.when(~_priority().isin(*PRIORITY_NAMES), "unknown priority")


_EVENT_TEXTS = ("message_id", "event_type", "publisher_id")
PRIORITY_NAMES = [name.upper() for name in PRIORITIES]


def _priority() -> Column:
    event, priority = _is("binary") | _is("structured"), F.col("priority")
    return F.when(event & priority["absent"], "INFO").otherwise(F.upper(priority["text"]))


def _texts() -> list[Column]:
    event, source = _is("binary") | _is("structured"), F.col("publisher_id")["text"]
    publisher = F.when(event & (source == _NOBODY), None).when(event, _unquote(source))
    return [
        F.col("message_id")["text"].alias("message_id"),
        publisher.otherwise(source).alias("publisher_id"),
        F.col("event_type")["text"].alias("event_type"),
        _priority().alias("priority"),
        F.col("timestamp")["text"].alias("timestamp"),
    ]


def _unquote(source: Column) -> Column:
    # The function is for HTML forms: it turns a plus into a space, and refuses a lone percent sign.
    escaped = F.regexp_replace(F.replace(source, F.lit("+"), F.lit("%2B")), r"%(?![0-9A-Fa-f]{2})", "%25")
    return F.when(source.contains("%"), F.try_url_decode(escaped)).otherwise(source)


def parsed_timestamp() -> Column:
    """Return the ``timestamp`` as a time, null when it is not valid."""
    text = F.col("timestamp")
    # Spark would read a bare time of day as today's.
    dashed = (
        (F.substring(text, 5, 1) == "-") & (F.substring(text, 8, 1) == "-") & (F.length(text) >= len(_DAY))
    )
    return F.when(dashed, F.try_to_timestamp(text))


_DAY = "0000-00-00"


def record_time() -> Column:
    """Return the record's time. If it is invalid, return the event's time, or else ``OLDEST_RECORD``.

    In Kafka usually the producer sets it: it may be any number, or -1 for none.
    """
    logged, found = F.col("logged"), F.col("event_time")
    sound = (
        F.when(each.between(F.lit(OLDEST_RECORD), F.lit(NEWEST_RECORD)), each) for each in (logged, found)
    )
    return F.coalesce(*sound, F.lit(OLDEST_RECORD))


def event_time_columns(clock: ClockTolerance) -> list[Column]:
    """Return the ``time`` that counts, and whether the event's own was not usable: ``misdated``."""
    logged, found = F.col("logged"), F.col("event_time")
    # In integers of microseconds: arithmetic of intervals would use the calendar.
    ahead = F.unix_micros(found) - F.unix_micros(logged)
    sound = F.coalesce(ahead.between(-clock.behind * 1_000_000, clock.ahead * 1_000_000), never())
    return [F.when(sound, found).otherwise(logged).alias("time"), (~sound).alias("misdated")]
