"""Parses JSON text into VARIANT on the JVM, and accepts the same JSON as ``notifier_kafka.wire.codec``.

``try_parse_json`` alone accepts more: it ignores what follows a value, turns half a surrogate pair
into a question mark, and allows twice the depth. It accepts less only at the extremes: numbers of
more than 1,000 digits, and texts beyond 16 MB. A float beyond doubles, such as 1e999, is infinite
here and null there; neither counts in a figure.
"""

import uuid

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from notifier_kafka.wire.codec import MAX_READ_DEPTH

# The text is parsed as the first item of a list whose second item is this. When something follows
# the value, or the text closes the list itself, the second item moves or disappears. Senders cannot
# know it.
_MARK = uuid.uuid4().hex

_NOT_A_NUMBER = r"(?<=[\s:,\[])(?:NaN|-?Infinity)(?=[\s,\]}])"
_ESCAPE = r"(?s)\\."
_ESCAPED_BACKSLASH = r"\\\\"
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = r"\\u[dD][89a-fA-F]"


def parse(text: Column) -> Column:
    """Parse a text for ``parsed_value``. Make it a column: an expression used twice is computed twice."""
    return F.try_parse_json(F.concat(F.lit("["), text, F.lit(f',"{_MARK}"]')))


def parsed_value(found: Column, text: Column) -> Column:
    """Return the VARIANT of what ``parse`` returned for a text, null when it is not JSON."""
    return _with_nulls_for_nan(_unwrapped(found), text)


def parse_leniently(text: Column) -> Column:
    """Return the VARIANT of a text, and ignore what follows it."""
    return _with_nulls_for_nan(F.try_parse_json(text), text)


def _with_nulls_for_nan(whole: Column, text: Column) -> Column:
    # Old senders write NaN and Infinity, which the codec reads as null. Only a text that is not
    # JSON is searched for them, because they would be replaced in strings as well.
    mended = F.regexp_replace(F.concat(F.lit("["), text, F.lit("]")), _NOT_A_NUMBER, "null")
    suspect = (text.contains("NaN") | text.contains("Infinity")) & whole.isNull()
    second = parse(F.when(suspect, F.substr(mended, F.lit(2), F.length(mended) - 2)))
    return F.coalesce(whole, _unwrapped(second))


def member(value: Column, name: str) -> Column:
    """Return a member as VARIANT, null when it is missing. JSON's null is a VARIANT."""
    return F.try_variant_get(value, f"$['{name}']", "variant")


def variant_type(value: Column) -> Column:
    """Return Spark's name of a VARIANT's type: STRING, VOID, OBJECT<...>."""
    return F.schema_of_variant(value)


def text_of(value: Column) -> Column:
    """Return a VARIANT's text, null when it is not text."""
    return F.when(variant_type(value) == "STRING", F.try_variant_get(value, "$", "string"))


def has_lone_surrogate(text: Column) -> Column:
    """Return whether valid JSON contains half of a surrogate pair, which is not text."""
    whole = F.regexp_replace(F.regexp_replace(text, _ESCAPED_BACKSLASH, ""), _PAIR, "")
    return text.contains("\\u") & whole.rlike(_HALF)


def is_too_deep(text: Column) -> Column:
    """Return whether valid JSON is nested deeper than the codec allows."""
    brackets = F.length(text) - F.length(F.translate(text, "[{", ""))
    many = (F.length(text) > 2 * MAX_READ_DEPTH) & (brackets > MAX_READ_DEPTH)
    return F.when(many, _depth(text) > MAX_READ_DEPTH).otherwise(never())


def never() -> Column:
    """Return the condition that is always false."""
    return F.lit(False)  # noqa: FBT003 - its only argument


def _unwrapped(both: Column) -> Column:
    found = F.try_variant_get(both, "$[1]", "string") == _MARK
    return F.when(found, F.try_variant_get(both, "$[0]", "variant"))


def _depth(text: Column) -> Column:
    # Without escapes every second piece between quotes is a string. A regular expression with a
    # repeated group recurses in Java, and a long text would exhaust the stack.
    pieces = F.split(F.regexp_replace(text, _ESCAPE, ""), '"')
    outside = F.concat_ws("", F.filter(pieces, lambda _, place: place % 2 == 0))
    marks = F.split(F.regexp_replace(outside, r"[^\[\]{}]", ""), "")
    start = F.struct(F.lit(0).alias("now"), F.lit(0).alias("most"))

    def step(at: Column, mark: Column) -> Column:
        now = at["now"] + F.when(mark.isin("[", "{"), 1).when(mark.isin("]", "}"), -1).otherwise(0)
        return F.struct(now.alias("now"), F.greatest(at["most"], now).alias("most"))

    return F.aggregate(marks, start, step)["most"]
