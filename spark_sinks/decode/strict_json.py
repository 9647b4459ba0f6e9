"""JSON text to VARIANT on the JVM, accepted exactly where ``notifier_kafka.wire.codec`` accepts it.

``try_parse_json`` alone takes more: it ignores what follows a value, turns half a surrogate
pair into a question mark and nests twice as deep. It takes less only at the extremes: numbers
of more than 1,000 digits, and texts beyond 16 MB. A float that no double holds, such as 1e999,
is infinite here and null there; as a figure neither counts.
"""

import uuid

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from notifier_kafka.wire.codec import MAX_READ_DEPTH

# The text is parsed as the first item of a list whose second is this. A text that brings
# something after its value, or that closes the list itself, moves or loses the second item;
# nobody who writes to a topic can know it.
_MARK = uuid.uuid4().hex

_NOT_A_NUMBER = r"(?<=[\s:,\[])(?:NaN|-?Infinity)(?=[\s,\]}])"
_ESCAPE = r"(?s)\\."
_ESCAPED_BACKSLASH = r"\\\\"
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = r"\\u[dD][89a-fA-F]"


def parse(text: Column) -> Column:
    """Parse a text, for ``value``: as a column, since what stands in an expression twice is done twice."""
    return F.try_parse_json(F.concat(F.lit("["), text, F.lit(f',"{_MARK}"]')))


def parsed_value(found: Column, text: Column) -> Column:
    """Return the VARIANT of a text that was wrapped by ``parse``, null for what is no JSON."""
    return _with_nulls_for_nan(_unwrapped(found), text)


def parse_leniently(text: Column) -> Column:
    """Return the VARIANT of a text of which nobody wants to know whether something follows it."""
    return _with_nulls_for_nan(F.try_parse_json(text), text)


def _with_nulls_for_nan(whole: Column, text: Column) -> Column:
    # Old senders write NaN and Infinity, which the codec reads as null. Only a text that is
    # no JSON is searched for them; in its strings they would be replaced as well.
    mended = F.regexp_replace(F.concat(F.lit("["), text, F.lit("]")), _NOT_A_NUMBER, "null")
    suspect = (text.contains("NaN") | text.contains("Infinity")) & whole.isNull()
    second = parse(F.when(suspect, F.substr(mended, F.lit(2), F.length(mended) - 2)))
    return F.coalesce(whole, _unwrapped(second))


def member(value: Column, name: str) -> Column:
    """Return a member as VARIANT; null when there is none, not when it is JSON's null."""
    return F.try_variant_get(value, f"$['{name}']", "variant")


def variant_type(value: Column) -> Column:
    """Return the type of a VARIANT as Spark spells it: STRING, VOID, OBJECT<...>."""
    return F.schema_of_variant(value)


def text_of(value: Column) -> Column:
    """Return the text that a VARIANT is, null when it is something else."""
    return F.when(variant_type(value) == "STRING", F.try_variant_get(value, "$", "string"))


def has_lone_surrogate(text: Column) -> Column:
    """Tell whether valid JSON spells half of a surrogate pair, which is no text."""
    whole = F.regexp_replace(F.regexp_replace(text, _ESCAPED_BACKSLASH, ""), _PAIR, "")
    return text.contains("\\u") & whole.rlike(_HALF)


def is_too_deep(text: Column) -> Column:
    """Tell whether valid JSON nests deeper than the codec reads."""
    brackets = F.length(text) - F.length(F.translate(text, "[{", ""))
    many = (F.length(text) > 2 * MAX_READ_DEPTH) & (brackets > MAX_READ_DEPTH)
    return F.when(many, _depth(text) > MAX_READ_DEPTH).otherwise(never())


def never() -> Column:
    """Return the condition that does not hold."""
    return F.lit(False)  # noqa: FBT003 - its only argument


def _unwrapped(both: Column) -> Column:
    found = F.try_variant_get(both, "$[1]", "string") == _MARK
    return F.when(found, F.try_variant_get(both, "$[0]", "variant"))


def _depth(text: Column) -> Column:
    # Without escapes every second piece between quotes is a string. No regular expression
    # with a repeated group: Java's recurse, and a long text would exhaust the stack.
    pieces = F.split(F.regexp_replace(text, _ESCAPE, ""), '"')
    outside = F.concat_ws("", F.filter(pieces, lambda _, place: place % 2 == 0))
    marks = F.split(F.regexp_replace(outside, r"[^\[\]{}]", ""), "")
    start = F.struct(F.lit(0).alias("now"), F.lit(0).alias("most"))

    def step(at: Column, mark: Column) -> Column:
        now = at["now"] + F.when(mark.isin("[", "{"), 1).when(mark.isin("]", "}"), -1).otherwise(0)
        return F.struct(now.alias("now"), F.greatest(at["most"], now).alias("most"))

    return F.aggregate(marks, start, step)["most"]
