"""The Spark benchmark in the table: it runs alone in a process, for its Java's sake."""

import json
import subprocess
import sys
from typing import Any

from benchmarks import measure, rows
from benchmarks.bare_clients import Void
from benchmarks.environment import Scene
from benchmarks.peers import ROOT
from benchmarks.rows import Row, Target

GROUP = "aggregate over Kafka, Spark"
FLOOR, LOOP = "floor", "single-process loop"
JOB, RICH = "default metrics, warm", "payload, percentiles, distinct"


def spark(scene: Scene) -> list[Row]:
    """Measure the sinks; the targets are those of their issue."""
    measure.say("aggregating by Spark")
    command = [sys.executable, "-m", "benchmarks", "spark", "--json"]
    command += ["--count", str(scene.size.spark), "--rounds", str(scene.size.rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, text=True, check=False)
    if done.returncode:
        raise Void("the Spark benchmark failed; it needs the extras confluent, fast, jre and spark")
    return make(json.loads(done.stdout))


def make(figures: list[dict[str, Any]]) -> list[Row]:
    """Make the rows of what the Spark benchmark printed."""
    rates: measure.Rounds = {
        name: [_round(each) for each in figures if each["name"].startswith(name)]
        for name in (FLOOR, JOB, LOOP, RICH)
    }
    return [
        rows.beside(GROUP, rates, JOB, FLOOR, Target("≥", 0.5)),
        rows.beside(GROUP, rates, JOB, LOOP, Target("≥", 1.0)),
        rows.beside(GROUP, rates, RICH, FLOOR, Target("≥", 0.3)),
        rows.beside(GROUP, rates, LOOP, FLOOR),
        rows.alone(GROUP, rates, FLOOR),
    ]


def _round(figure: dict[str, Any]) -> measure.Round:
    records = figure["records"]
    return measure.Round(records / figure["seconds"], figure["cpu"] / records * 1e6)
