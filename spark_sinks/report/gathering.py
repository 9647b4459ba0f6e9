"""Gathers what the page shows: the rows of the output, and the counts of the job."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc

from spark_sinks.outputs import files
from spark_sinks.report import counts, origin, series


class Report(NamedTuple):
    """Everything that the page shows."""

    counts: counts.Counts
    durations: series.Durations | None
    own: Sequence[series.Series]
    origin: origin.Origin | None
    command: Sequence[str]
    source: str
    widths: Sequence[int]


def gather(directory: Path, checkpoint: Path, command: Sequence[str]) -> Report:
    """Read an output. Raises ``ConfigurationError`` when it lacks the rows that a page needs."""
    rows = files.table(directory)
    # JSON and charts have no infinity and no NaN.
    rows = rows.filter(pc.is_finite(rows["value"]))
    widths = pc.unique(counts.windows(rows)["width"]).to_pylist()
    return Report(
        counts.of_rows(rows),
        series.durations(rows),
        series.own(rows),
        origin.read(checkpoint),
        command,
        str(directory.absolute()),
        sorted(widths),
    )
