"""Figures of partials by themselves."""

from decimal import Decimal

import pyarrow as pa
import pytest

from spark_sinks.engine import buckets, rollup
from spark_sinks.language.field_paths import FieldPath
from spark_sinks.language.metrics import Metric, Window
from spark_sinks.outputs import rows


@pytest.mark.parametrize(("percentile", "value"), [(99.9, 1.0), (99.91, 100.0), (0.1, 1.0), (100.0, 100.0)])
def test_a_percentile_is_the_first_value_that_so_many_do_not_exceed(percentile: float, value: float) -> None:
    """Of a thousand 99.9 percent are 999, and in floating point one more."""
    window = (Window.tumbling(60),)
    metric = Metric(
        "p", "percentiles", "B", value=FieldPath("payload", ("n",)), windows=window, percentiles=(percentile,)
    )
    items = buckets.items(pa.chunked_array([[1.0, 100.0]]), metric).to_pylist()
    common = {"metric": "p", "start": 0, "width": 60, "group": "[]"}
    common |= {"low": Decimal(1), "high": Decimal(100)}
    counts = zip(items, (999, 1), strict=True)
    merged = pa.Table.from_pylist([{**common, "item": i, "count": c} for i, c in counts], rollup.PARTIAL)
    (row,) = rows.of_partials(merged, [metric], lambda _: []).to_pylist()
    assert row["value"] == pytest.approx(value, rel=buckets.MAX_RELATIVE_ERROR)
