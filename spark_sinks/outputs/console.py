"""``console:``: the rows of each batch on standard output, one JSON object in each line."""

import json
import sys

import pyarrow as pa
from oslo_config import cfg

from spark_sinks.outputs import rows


class ConsoleSink:
    """Prints the rows that each batch changed. Stores nothing."""

    def __init__(self, place: str, conf: cfg.ConfigOpts) -> None:
        pass

    def last(self, job: str) -> None:  # noqa: ARG002 - nothing is kept
        return None

    def write(self, job: str, batch: int, found: pa.Table) -> None:  # noqa: ARG002 - the same
        for row in found.sort_by([(name, "ascending") for name in rows.WINDOW_KEY]).to_pylist():
            sys.stdout.write(json.dumps(rows.as_json(row)) + "\n")
        sys.stdout.flush()
