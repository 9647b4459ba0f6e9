"""A process killed at every step: what comes of it in the end is the truth."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import recount
import rig
import test_job
import traffic
from pyspark.sql import SparkSession

from spark_sinks import metrics_file

METRICS = """
metrics:
  - {name: count, kind: count, group_by: [event_type], window: 1h}
  - {name: took, kind: max, window: 1h, value: {start: "*.start", end: "*.end", key: $.payload.id}}
"""
# When a process dies; the next one goes on from there. Each is another step of a batch.
MOMENTS = [
    ("checkpoint/plans/00000001.json", "planned"),
    ("checkpoint/partials/00000001.parquet.part", "its partials half written"),
    ("batch 1: written", "its data written, and not yet counted"),
    ("out/batch=00000001/part-*", "counted, and in a sink that is not yet marked"),
]
LATER = ("out/_batches/00000002", "in one sink, and not in the other")


def run(made: rig.Rig, moment: str) -> int:
    directory = made.directory
    when = moment if moment.startswith("batch") or not moment else str(directory / moment)
    command = [sys.executable, str(Path(__file__).with_name("aggregate_child.py")), when]
    command += ["--config-file", str(directory / "nk.conf"), "aggregate", "--topic", "t"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=directory)
    if done.returncode not in (0, -signal.SIGKILL):
        raise AssertionError(done.stderr[-3000:])
    return done.returncode


def test_killed_at_every_step(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(METRICS)
    made = rig.Rig(tmp_path, metrics_file.read(str(tmp_path / "m.yaml")))
    outputs = [f"parquet:{tmp_path}/out", f"jdbc:sqlite:{tmp_path}/rows.db"]
    (tmp_path / "nk.conf").write_text(
        f"[DEFAULT]\ntransport_url = {made.url}\n[spark_sinks]\nmaster = local[2]\n"
        f"metrics_file = {tmp_path}/m.yaml\ncheckpoint_dir = {tmp_path}/checkpoint\n"
        f"clock_behind = {rig.CLOCK.behind}\nclock_ahead = {rig.CLOCK.ahead}\n"
        + "".join(f"output = {output}\n" for output in outputs)
    )
    sent = traffic.records(traffic.notifications(400))
    made.publish(sent[:250])
    plans = set()
    for moment, meaning in MOMENTS:
        assert run(made, moment) == -signal.SIGKILL, meaning
        plans.add((tmp_path / "checkpoint/plans/00000001.json").read_text())
    assert len(plans) == 1, "an interrupted batch has the same spans again"
    made.publish([*sent[250:], *sent[100:120]])
    assert run(made, LATER[0]) == -signal.SIGKILL, LATER[1]

    made.run(spark, rig.bounds(), outputs)
    found = made.parquet("out")
    assert recount.compare(found, made.truth(), made.metrics) == []
    assert test_job.table(tmp_path / "rows.db") == found
    assert os.listdir(tmp_path / "checkpoint/plans") == os.listdir(tmp_path / "checkpoint/counted")
