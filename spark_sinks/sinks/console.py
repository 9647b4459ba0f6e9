"""``console:``: the rows of each batch on standard output, a JSON object a line."""

import json
import sys

from oslo_config import cfg
from pyspark.sql import DataFrame


class ConsoleSink:
    """Prints what each batch changed. Keeps nothing."""

    def __init__(self, place: str, conf: cfg.ConfigOpts) -> None:
        pass

    def last(self, job: str) -> None:  # noqa: ARG002 - nothing is kept
        return None

    def write(self, job: str, batch: int, found: DataFrame) -> int:  # noqa: ARG002 - the same
        count = 0
        for row in found.orderBy("metric", "window_start", "window_end").toLocalIterator():
            times = {
                name: row[name].strftime("%Y-%m-%dT%H:%M:%SZ") for name in ("window_start", "window_end")
            }
            shown = {"metric": row.metric, "unit": row.unit, **times, "group": row.group, "value": row.value}
            sys.stdout.write(json.dumps(shown) + "\n")
            count += 1
        sys.stdout.flush()
        return count
