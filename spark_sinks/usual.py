"""The short way for records whose headers and outline are those that this package writes.

Their members are in the headers, and again at fixed places of the value: what stands there
is compared, not parsed. Such a record is taken at its word: its payload is looked into only
where a metric needs it, while ``decode`` would have found out that it is no JSON. Everything
else goes the long way, which is several times as long.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.codec import MESSAGE_MEMBER, VERSION, VERSION_MEMBER
from spark_sinks import jsontext
from spark_sinks.bounds import CLOCK, Clock
from spark_sinks.decode import MAX_SIZE, POSITION, PRIORITY_NAMES, dated

HEADERS = ("content-type", "priority", "message-id", "event-type", "publisher-id")
# The members that are texts, in their order in the value, with the headers that repeat them.
_TEXTS = {
    "message_id": "message-id",
    "publisher_id": "publisher-id",
    "event_type": "event-type",
    "priority": "priority",
}
ZERO = "0000-00-00 00:00:00.000000"
STAMP = len(ZERO)

_ENVELOPE = f'{{"{VERSION_MEMBER}": "{VERSION}", "{MESSAGE_MEMBER}": "'
# The ways that our two JSON libraries spell the object, in an envelope and alone: what comes
# before it and after, the quotation mark, and what follows a colon or comma.
_OUTLINES = [
    (before, after, quote, space)
    for before, after, quote in ((_ENVELOPE, '"}', '\\"'), ("", "", '"'))
    for space in ("", " ")
]


def decode(raw: DataFrame, clock: Clock = CLOCK, needed: Column | None = None) -> DataFrame:
    """Return a row for every record; those that are ``usual`` are decoded as by ``decode.decode``.

    ``needed`` tells by the texts whose payload is looked into; without it all are. Do not
    filter what is returned before it is kept: the filter would be computed beside it, anew.
    """
    marked = _marked(raw)
    usual = F.col("outline").isNotNull()
    cut = marked.select(
        *POSITION,
        F.col("timestamp").alias("logged"),
        F.lit(None).cast("string").alias("reason"),
        *_TEXTS,
        F.substring("value", -_of_outline(_after_stamp), STAMP).cast("string").alias("timestamp"),
        F.when(usual if needed is None else usual & needed, _cut()).alias("cut"),
        "outline",
        usual.alias("usual"),
    )
    taken = cut.select("*", _unquoted().alias("text"))
    fields = taken.select(
        "*",
        jsontext.trusted(F.col("text")).alias("payload"),
        F.lit(None).cast("variant").alias("context"),
    )
    return fields.select("*", *dated(clock)).drop("outline", "cut", "text")


def _marked(raw: DataFrame) -> DataFrame:
    """Add the texts in the headers, and the number of the outline: null for what is not ours."""
    headers = F.col("headers")
    named = (F.size(headers) == len(HEADERS)) & (F.octet_length("value") <= MAX_SIZE)
    for place, name in enumerate(HEADERS):
        named &= headers[place]["key"] == name
    texts = [
        F.when(named, headers[HEADERS.index(h)]["value"].cast("string")).alias(t) for t, h in _TEXTS.items()
    ]
    text = F.col("value").cast("string")
    found = raw.select("*", text.alias("text"), *texts)

    members = F.concat(*_TEXTS)
    sound = ~members.contains('"') & ~members.contains("\\") & F.col("priority").isin(*PRIORITY_NAMES)
    outline = F.lit(None).cast("int")
    # By its first few bytes a record has one outline, and the others need not be compared.
    for number, each in enumerate(_OUTLINES):
        whole = F.col("text").startswith(_beginning(*each)) & _ends(*each)
        outline = F.when(F.col("text").startswith(_head(*each)), F.when(whole, number)).otherwise(outline)
    outline = F.when(sound & F.is_valid_utf8("text"), outline)
    return found.select("*", outline.alias("outline"))


def _head(before: str, _after: str, quote: str, space: str) -> str:
    return f"{before}{{{quote}message_id{quote}:{space}{quote}"


def _beginning(before: str, _after: str, quote: str, space: str) -> Column:
    """Spell what precedes the payload."""
    made: list[Column] = [F.lit(before + "{")]
    for name in _TEXTS:
        made += [F.lit(f"{quote}{name}{quote}:{space}{quote}"), F.col(name), F.lit(f"{quote},{space}")]
    return F.concat(*made, F.lit(f"{quote}payload{quote}:{space}"))


def _around(_before: str, after: str, quote: str, space: str) -> tuple[str, str]:
    """Spell what precedes and what follows the time, after the payload."""
    return (
        f",{space}{quote}timestamp{quote}:{space}{quote}",
        f"{quote},{space}{quote}_context{quote}:{space}{{}}}}{after}",
    )


def _ends(before: str, after: str, quote: str, space: str) -> Column:
    # On bytes: text would have to be counted from its beginning.
    first, last = _around(before, after, quote, space)
    tail = F.substring("value", -(len(first) + STAMP + len(last)), 1 << 20).cast("string")
    return F.translate(tail, "123456789", "0" * 9) == first + ZERO + last


def _of_outline(length: Callable[..., int]) -> Column:
    """Return a length that depends on the outline."""
    lengths = F.array(*(F.lit(length(*each)) for each in _OUTLINES))
    return F.get(lengths, F.col("outline"))


def _after_stamp(before: str, after: str, quote: str, space: str) -> int:
    return STAMP + len(_around(before, after, quote, space)[1])


def _after_payload(before: str, after: str, quote: str, space: str) -> int:
    return STAMP + sum(map(len, _around(before, after, quote, space)))


def _before_payload(before: str, _after: str, quote: str, space: str) -> int:
    """Return the length of what precedes the payload, without the texts."""
    names = sum(len(f"{quote}{name}{quote}:{space}{quote}{quote},{space}") for name in _TEXTS)
    return len(before + "{") + names + len(f"{quote}payload{quote}:{space}")


def _cut() -> Column:
    """Cut the payload out: as bytes, whose places are known."""
    start = _of_outline(_before_payload) + F.octet_length(F.concat(*_TEXTS))
    length = F.octet_length("value") - start - _of_outline(_after_payload)
    return F.substring("value", start + 1, length).cast("string")


def _unquoted() -> Column:
    """Take the payload of an envelope for what it is: JSON text in a JSON string."""
    cut, enveloped = F.col("cut"), F.col("outline") < len(_OUTLINES) // 2
    # Most such texts have escaped quotation marks alone, for which no parser is needed.
    simple = F.replace(cut, F.lit('\\"'), F.lit('"'))
    whole = F.try_parse_json(F.concat(F.lit('"'), cut, F.lit('"')))
    unquoted = F.when(~simple.contains("\\"), simple).otherwise(F.try_variant_get(whole, "$", "string"))
    return F.when(enveloped, unquoted).otherwise(cut)
