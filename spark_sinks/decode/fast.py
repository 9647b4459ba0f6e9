"""Decodes records quickly whose headers and outline are those that this package writes.

Their members are in the headers and again at known places of the value, where they are compared,
not parsed. The payload is parsed only when a metric needs it, so a payload that is not JSON may
go unnoticed, unlike in ``full``. All other records are left to ``full``, which takes several times
as long.
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
# The text members in the order of the value, and the headers that repeat them.
_TEXTS = {
    "message_id": "message-id",
    "publisher_id": "publisher-id",
    "event_type": "event-type",
    "priority": "priority",
}
# The first two headers are always the same. The order of the others has varied between releases.
_OTHER_HEADERS = range(2, 1 + len(_TEXTS))
TIMESTAMP_LENGTH = len("0000-00-00 00:00:00.000000")

_ENVELOPE = f'{{"{VERSION_MEMBER}": "{VERSION}", "{MESSAGE_MEMBER}": "'
# The outlines that our two JSON libraries write, in an envelope and alone: the text before and
# after the object, its quotation mark, and the space after a colon or comma.
_OUTLINES = [
    (before, after, quote, space)
    for before, after, quote in ((_ENVELOPE, '"}', '\\"'), ("", "", '"'))
    for space in ("", " ")
]


def _outline_pieces(before: str, after: str, quote: str, space: str) -> list[str]:
    """Return the fixed pieces around the texts, the payload and the time, in their order."""
    members = [*_TEXTS, "payload", "timestamp", "_context"]
    # Texts have quotation marks, and members are separated by commas.
    opens = [quote if name in (*_TEXTS, "timestamp") else "" for name in members]
    closes = ["", *(f"{mark},{space}" for mark in opens)]
    made = [
        f"{close}{quote}{name}{quote}:{space}{mark}"
        for name, mark, close in zip(members, opens, closes, strict=False)
    ]
    return [f"{before}{{{made[0]}", *made[1:-1], f"{made[-1]}{{}}}}{after}"]


_PIECES = [_outline_pieces(*each) for each in _OUTLINES]
_PAYLOAD, _TIMESTAMP, _END = len(_TEXTS), len(_TEXTS) + 1, len(_TEXTS) + 2
# The lengths of what precedes the payload, without the texts, and of what follows it.
_BEFORE = [sum(map(len, each[: _PAYLOAD + 1])) for each in _PIECES]
_AFTER = [len(each[_TIMESTAMP]) + TIMESTAMP_LENGTH + len(each[_END]) for each in _PIECES]


def decode(
    raw: DataFrame, clock: ClockTolerance = DEFAULT_TOLERANCE, needed: Column | None = None
) -> DataFrame:
    """Return a row for every record. Rows with ``is_fast`` are the same as those of ``full.decode``.

    ``needed`` is a condition on the texts that selects the payloads to parse; without it all are
    parsed. Persist the result before filtering it: otherwise the filter is computed twice.
    """
    is_fast = F.col("is_fast")
    payload_text = F.when(is_fast if needed is None else is_fast & needed, _payload_text())
    found = _split_generated_code(_with_outline(raw)).withColumn("payload_text", payload_text)
    found = found.withColumn("payload_json", _payload_json())
    return found.select(
        *POSITION,
        "logged",
        F.lit(None).cast("string").alias("reason"),
        *_TEXTS,
        "timestamp",
        "is_fast",
        strict_json.parse_leniently(F.col("payload_json")).alias("payload"),
        F.lit(None).cast("variant").alias("context"),
        *event_time_columns(clock),
    )


def _split_generated_code(frame: DataFrame) -> DataFrame:
    """Make Spark generate two methods: one for the steps before this, one for those after it.

    Spark generates one Java method for all steps of a record. It generates none when that would be
    larger than a JVM compiles (``hugeMethodLimit``), and each record takes a third longer. The
    number of partitions is never this high, so nothing is coalesced.
    """
    return frame.coalesce(1 << 20)


def _with_outline(raw: DataFrame) -> DataFrame:
    """Add the texts from the headers, the time from the value, and whether its outline is ours."""
    found = raw.select(
        *POSITION,
        F.col("timestamp").alias("logged"),
        "value",
        *_header_texts(),
    )
    # The first bytes determine the outline, so only one needs comparing.
    outline = F.lit(None).cast("int")
    for number, pieces in enumerate(_PIECES):
        outline = F.when(_value_text().startswith(pieces[0]), number).otherwise(outline)
    members = F.concat(*_TEXTS)
    sound = ~members.contains('"') & ~members.contains("\\") & F.is_valid_utf8(members)
    sound &= F.col("priority").isin(*PRIORITY_NAMES) & (F.octet_length("value") <= MAX_VALUE_BYTES)
    found = found.withColumn("outline", F.when(sound, outline))
    # On bytes: positions in text are counted from its beginning.
    tail = F.substring("value", -_by_outline(_AFTER), 1 << 10)
    stamp = F.substring(
        "value", -_by_outline([TIMESTAMP_LENGTH + len(each[_END]) for each in _PIECES]), TIMESTAMP_LENGTH
    )
    found = found.withColumns({"tail": tail.cast("string"), "timestamp": stamp.cast("string")})
    found = found.withColumn("event_time", parsed_timestamp()).withColumn("logged", record_time())
    return found.withColumn("is_fast", F.coalesce(_matches_outline(), strict_json.never())).drop("tail")


def _header_texts() -> list[Column]:
    """Return the texts from the headers, null when these are not ours."""
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
    """Return whether the value consists of the outline, the texts, a payload and a time."""
    pieces = [_by_outline([each[place] for each in _PIECES]) for place in range(len(_PIECES[0]))]
    texts = [each for name, piece in zip(_TEXTS, pieces, strict=False) for each in (piece, F.col(name))]
    stamp, digits = F.col("timestamp"), ("0", "9")
    return (
        _value_text().startswith(F.concat(*texts, pieces[_PAYLOAD]))
        & F.col("tail").startswith(pieces[_TIMESTAMP])
        & F.col("tail").endswith(pieces[_END])
        # A valid time that begins and ends with digits contains no quotation mark.
        & F.col("event_time").isNotNull()
        & F.substring(stamp, 1, 1).between(*digits)
        & F.substring(stamp, -1, 1).between(*digits)
    )


def _value_text() -> Column:
    # Not a column: that would be copied from step to step, as the value is.
    return F.col("value").cast("string")


def _by_outline(values: list[str] | list[int]) -> Column:
    """Return the value for the record's outline."""
    return F.get(F.array(*map(F.lit, values)), F.col("outline"))


def _payload_text() -> Column:
    """Cut the payload out of the bytes, where its position is known."""
    start = _by_outline(_BEFORE)
    for name in _TEXTS:
        start += F.octet_length(name)
    length = F.octet_length("value") - start - _by_outline(_AFTER)
    return F.substring("value", start + 1, length).cast("string")


def _payload_json() -> Column:
    """Unescape the payload of an envelope, which is JSON text in a JSON string."""
    text, enveloped = F.col("payload_text"), F.col("outline") < len(_OUTLINES) // 2
    # Most such texts have no other escapes than quotation marks: they need no parser.
    simple = F.replace(text, F.lit('\\"'), F.lit('"'))
    whole = F.try_parse_json(F.concat(F.lit('"'), text, F.lit('"')))
    unquoted = F.when(~simple.contains("\\"), simple).otherwise(F.try_variant_get(whole, "$", "string"))
    return F.when(F.is_valid_utf8(text), F.when(enveloped, unquoted).otherwise(text))
