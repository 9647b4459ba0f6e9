"""The short way for records whose headers and outline are those that this package writes.

Their members are in the headers, and again at fixed places of the value: what stands there
is compared, not parsed. Such a record is taken at its word: its payload is looked into only
where a metric needs it, while ``decode`` would have found out that it is no JSON. Everything
else goes the long way, which is several times as long.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.wire.codec import MESSAGE_MEMBER, VERSION, VERSION_MEMBER
from spark_sinks.decode import strict_json
from spark_sinks.decode.clock_tolerance import DEFAULT_TOLERANCE, ClockTolerance
from spark_sinks.decode.full import (
    MAX_VALUE_BYTES,
    POSITION,
    PRIORITY_NAMES,
    event_time_columns,
    parsed_timestamp,
    record_time,
)

CONTENT_TYPE = "application/json"
# The members that are texts, in their order in the value, with the headers that repeat them.
_TEXTS = {
    "message_id": "message-id",
    "publisher_id": "publisher-id",
    "event_type": "event-type",
    "priority": "priority",
}
# The first two headers are always the same; the others have come in more than one order.
_OTHER_HEADERS = range(2, 1 + len(_TEXTS))
TIMESTAMP_LENGTH = len("0000-00-00 00:00:00.000000")

_ENVELOPE = f'{{"{VERSION_MEMBER}": "{VERSION}", "{MESSAGE_MEMBER}": "'
# The ways that our two JSON libraries spell the object, in an envelope and alone: what comes
# before it and after, the quotation mark, and what follows a colon or comma.
_OUTLINES = [
    (before, after, quote, space)
    for before, after, quote in ((_ENVELOPE, '"}', '\\"'), ("", "", '"'))
    for space in ("", " ")
]


def _outline_pieces(before: str, after: str, quote: str, space: str) -> list[str]:
    """Spell what stands around the texts, the payload and the time, in their order."""
    members = [*_TEXTS, "payload", "timestamp", "_context"]
    # Between two members the comma, and of texts the quotation marks.
    opens = [quote if name in (*_TEXTS, "timestamp") else "" for name in members]
    closes = ["", *(f"{mark},{space}" for mark in opens)]
    made = [
        f"{close}{quote}{name}{quote}:{space}{mark}"
        for name, mark, close in zip(members, opens, closes, strict=False)
    ]
    return [f"{before}{{{made[0]}", *made[1:-1], f"{made[-1]}{{}}}}{after}"]


_PIECES = [_outline_pieces(*each) for each in _OUTLINES]
_PAYLOAD, _TIMESTAMP, _END = len(_TEXTS), len(_TEXTS) + 1, len(_TEXTS) + 2
# Their lengths: of all that precedes the payload but the texts, and of what follows it.
_BEFORE = [sum(map(len, each[: _PAYLOAD + 1])) for each in _PIECES]
_AFTER = [len(each[_TIMESTAMP]) + TIMESTAMP_LENGTH + len(each[_END]) for each in _PIECES]


def decode(
    raw: DataFrame, clock: ClockTolerance = DEFAULT_TOLERANCE, needed: Column | None = None
) -> DataFrame:
    """Return a row for every record; those that are ``usual`` are decoded as by ``decode.decode``.

    ``needed`` tells by the texts whose payload is looked into; without it all are. Do not
    filter what is returned before it is kept: the filter would be computed beside it, anew.
    """
    usual = F.col("is_fast")
    cut = _split_generated_code(_with_outline(raw)).withColumn(
        "cut", F.when(usual if needed is None else usual & needed, _payload_text())
    )
    taken = cut.withColumn("text", _payload_json())
    return taken.select(
        *POSITION,
        "logged",
        F.lit(None).cast("string").alias("reason"),
        *_TEXTS,
        "timestamp",
        "is_fast",
        strict_json.parse_leniently(F.col("text")).alias("payload"),
        F.lit(None).cast("variant").alias("context"),
        *event_time_columns(clock),
    )


def _split_generated_code(frame: DataFrame) -> DataFrame:
    """Have what comes before this and what comes behind compiled as two methods.

    Spark makes one Java method of all that a record goes through, and does without where that is
    larger than a JVM compiles (``hugeMethodLimit``): then each record takes a third longer. There
    are never so many partitions, so nothing is coalesced.
    """
    return frame.coalesce(1 << 20)


def _with_outline(raw: DataFrame) -> DataFrame:
    """Add the texts in the headers, the time in the value, and whether that has an outline of ours."""
    found = raw.select(
        *POSITION,
        F.col("timestamp").alias("logged"),
        "value",
        *_header_texts(),
    )
    # By its first few bytes a record has one outline, and the others need not be compared.
    outline = F.lit(None).cast("int")
    for number, pieces in enumerate(_PIECES):
        outline = F.when(_value_text().startswith(pieces[0]), number).otherwise(outline)
    members = F.concat(*_TEXTS)
    sound = ~members.contains('"') & ~members.contains("\\") & F.is_valid_utf8(members)
    sound &= F.col("priority").isin(*PRIORITY_NAMES) & (F.octet_length("value") <= MAX_VALUE_BYTES)
    found = found.withColumn("outline", F.when(sound, outline))
    # On bytes: text would have to be counted from its beginning.
    tail = F.substring("value", -_by_outline(_AFTER), 1 << 10)
    stamp = F.substring(
        "value", -_by_outline([TIMESTAMP_LENGTH + len(each[_END]) for each in _PIECES]), TIMESTAMP_LENGTH
    )
    found = found.withColumns({"tail": tail.cast("string"), "timestamp": stamp.cast("string")})
    found = found.withColumn("event_time", parsed_timestamp()).withColumn("logged", record_time())
    return found.withColumn("is_fast", F.coalesce(_matches_outline(), strict_json.never())).drop("tail")


def _header_texts() -> list[Column]:
    """Take the texts out of the headers: null where these are not ours."""
    headers = F.col("headers")
    ours = (F.size(headers) == 1 + len(_TEXTS)) & (headers[0]["key"] == "content-type")
    ours &= headers[0]["value"].cast("string") == CONTENT_TYPE
    found = []
    for name, header in _TEXTS.items():
        value = (
            F.when(headers[1]["key"] == header, headers[1]["value"]) if name == "priority" else F.lit(None)
        )
        for place in _OTHER_HEADERS if name != "priority" else ():
            value = F.when(headers[place]["key"] == header, headers[place]["value"]).otherwise(value)
        found.append(F.when(ours, value.cast("string")).alias(name))
    return found


def _matches_outline() -> Column:
    """Tell whether the value is nothing but the outline, the texts, a payload and a time."""
    pieces = [_by_outline([each[place] for each in _PIECES]) for place in range(len(_PIECES[0]))]
    texts = [each for name, piece in zip(_TEXTS, pieces, strict=False) for each in (piece, F.col(name))]
    stamp, digits = F.col("timestamp"), ("0", "9")
    return (
        _value_text().startswith(F.concat(*texts, pieces[_PAYLOAD]))
        & F.col("tail").startswith(pieces[_TIMESTAMP])
        & F.col("tail").endswith(pieces[_END])
        # What was read as a time, and not trimmed for that, holds nothing that would end a text.
        & F.col("event_time").isNotNull()
        & F.substring(stamp, 1, 1).between(*digits)
        & F.substring(stamp, -1, 1).between(*digits)
    )


def _value_text() -> Column:
    # No column: it would be copied from step to step, as the value is.
    return F.col("value").cast("string")


def _by_outline(values: list[str] | list[int]) -> Column:
    """Return a value that depends on the outline."""
    return F.get(F.array(*map(F.lit, values)), F.col("outline"))


def _payload_text() -> Column:
    """Cut the payload out: as bytes, whose places are known."""
    start = _by_outline(_BEFORE)
    for name in _TEXTS:
        start += F.octet_length(name)
    length = F.octet_length("value") - start - _by_outline(_AFTER)
    return F.substring("value", start + 1, length).cast("string")


def _payload_json() -> Column:
    """Take the payload of an envelope for what it is: JSON text in a JSON string."""
    cut, enveloped = F.col("cut"), F.col("outline") < len(_OUTLINES) // 2
    # Most such texts have escaped quotation marks alone, for which no parser is needed.
    simple = F.replace(cut, F.lit('\\"'), F.lit('"'))
    whole = F.try_parse_json(F.concat(F.lit('"'), cut, F.lit('"')))
    unquoted = F.when(~simple.contains("\\"), simple).otherwise(F.try_variant_get(whole, "$", "string"))
    return F.when(F.is_valid_utf8(cut), F.when(enveloped, unquoted).otherwise(cut))
