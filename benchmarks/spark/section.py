"""The Spark benchmark in the table: it runs in a process of its own, because of its JVM."""

import json
import subprocess
import sys
from typing import Any

from benchmarks import measure, rows
from benchmarks.bare_clients import InvalidMeasurement
from benchmarks.environment import Environment
from benchmarks.peers import ROOT
from benchmarks.rows import Goal, Row

GROUP = "aggregate over Kafka, Spark"
FLOOR, LOOP = "floor", "single-process loop"
JOB, RICH = "default metrics, warm", "payload, percentiles, distinct"


def spark(environment: Environment) -> list[Row]:
    """Measure the Spark job."""
    measure.report_progress("aggregating by Spark")
    command = [sys.executable, "-m", "benchmarks", "spark", "--json"]
    command += ["--count", str(environment.size.spark), "--rounds", str(environment.size.rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, text=True, check=False)
    if done.returncode:
        raise InvalidMeasurement(
            "the Spark benchmark failed; it needs the extras confluent, fast, jre and spark"
        )
    return make_rows(json.loads(done.stdout))


def make_rows(figures: list[dict[str, Any]]) -> list[Row]:
    """Make the rows from the output of the Spark benchmark."""
    rates: measure.Rounds = {
        name: [_round(each) for each in figures if each["name"].startswith(name)]
        for name in (FLOOR, JOB, LOOP, RICH)
    }
    return [
        rows.make_ratio_row(GROUP, rates, JOB, FLOOR, Goal("≥", 0.5)),
        rows.make_ratio_row(GROUP, rates, JOB, LOOP, Goal("≥", 1.0)),
        rows.make_ratio_row(GROUP, rates, RICH, FLOOR, Goal("≥", 0.3)),
        rows.make_ratio_row(GROUP, rates, LOOP, FLOOR),
        rows.make_row(GROUP, rates, FLOOR),
    ]


def _round(figure: dict[str, Any]) -> measure.Round:
    records = figure["records"]
    return measure.Round(records / figure["seconds"], figure["cpu"] / records * 1e6)
