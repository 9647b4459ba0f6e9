"""``notifier-kafka aggregate`` as a program: what it refuses before Spark starts."""

import csv
import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from notifier_kafka.cli.exits import Exit
from tests.shared.spark import rig, traffic

DEADLINE = 300.0


def command(made: rig.Rig, *arguments: str) -> list[str]:
    program = [sys.executable, "-m", "notifier_kafka.cli.main", "-v", "--transport-url", made.url]
    return [*program, *arguments]


def run(
    made: rig.Rig, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(made, *arguments),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        cwd=made.directory,
        env={**os.environ, **(env or {})},
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["--metrics", "bad.yaml"],
            Exit.CONFIGURATION,
            "bad.yaml, line 2: unknown kind 'cuont'; did you mean",
        ),
        (["--metrics", "none.yaml"], Exit.CONFIGURATION, "none.yaml cannot be read: No such file"),
        (["--window", "1 minute"], Exit.CONFIGURATION, "window: '1 minute' is not a time span"),
        (["--output", "parqet:x"], Exit.CONFIGURATION, "did you mean parquet?"),
        (
            ["--output", "parquet:taken"],
            Exit.CONFIGURATION,
            "taken is not empty and not an output of this program",
        ),
        (
            ["--checkpoint-dir", "taken"],
            Exit.CONFIGURATION,
            "taken is not empty and not a checkpoint: it holds thesis",
        ),
        (["--every", "often"], Exit.USAGE, "often"),
        (["--config-file", "nojava.conf"], Exit.MISSING_EXTRA, "none that is Java 17 or 21: "),
    ],
)
def test_refused_in_a_line(tmp_path: Path, arguments: list[str], code: Exit, said: str) -> None:
    made = rig.Rig(tmp_path)
    (tmp_path / "bad.yaml").write_text("metrics:\n  - {name: a, kind: cuont}\n")
    (tmp_path / "nojava.conf").write_text("[spark_sinks]\njava = /nowhere\n")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").touch()
    made.publish(traffic.records(traffic.notifications(10)))
    first = arguments[:2] if arguments[0] == "--config-file" else []
    done = run(made, *first, "aggregate", *arguments[len(first) :], *_checkpoint(arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def _checkpoint(arguments: list[str]) -> list[str]:
    return [] if "--checkpoint-dir" in arguments else ["--checkpoint-dir", "checkpoint"]


def test_a_dry_run_says_what_there_is(tmp_path: Path) -> None:
    made = rig.Rig(tmp_path)
    made.publish(traffic.records(traffic.notifications(20)))
    done = run(made, "aggregate", "--dry-run", "--topic", "t")
    assert done.returncode == 0
    assert f"{len(traffic.records(traffic.notifications(20)))} records in 3 partitions" in done.stderr
    arguments = ["--max-records", "4", "--since", "beginning"]
    bounded = run(made, "aggregate", "--dry-run", "--topic", "t", *arguments)
    assert "4 records in " in bounded.stderr
    before = run(made, "aggregate", "--dry-run", "--topic", "t", "--until", "2020-01-01T00:00:00Z")
    assert "0 records" in before.stderr
    for_programs = run(made, "aggregate", "--dry-run", "--topic", "t", "-f", "csv")
    assert for_programs.stderr == ""
    header, *rows = csv.reader(for_programs.stdout.splitlines())
    assert header == ["topic", "partition", "first", "next", "records"]
    assert sum(int(row[-1]) for row in rows) == len(traffic.records(traffic.notifications(20)))
    assert not (tmp_path / "checkpoint").exists()


def test_what_spark_submit_needs_is_fetched_with_the_java_of_the_file(tmp_path: Path) -> None:
    """No other: with one that does not run nothing is fetched, whatever else is on the PATH."""
    (tmp_path / "nk.conf").write_text("[spark_sinks]\njava = /nowhere/java\n")
    done = subprocess.run(
        [sys.executable, "-m", "spark_sinks.submit", "--config-file", f"{tmp_path}/nk.conf"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "empty")},
    )
    assert (done.returncode, done.stdout) == (Exit.MISSING_EXTRA, "")
    assert "/nowhere/java" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.long
def test_options_that_reach_a_run(tmp_path: Path) -> None:
    """A bound, a horizon and properties of Spark's, in a process with a Spark of its own."""
    made = rig.Rig(tmp_path)
    sent = [
        each for each in traffic.records(traffic.notifications(30)) if each.value not in traffic.MALFORMED
    ]
    made.publish([*sent[:20], *sent[:5]])
    until = max(each.timestamp for each in made.deliveries()) + 1e-6
    made.publish(sent[20:])
    (tmp_path / "events").mkdir()
    (tmp_path / "nk.conf").write_text(
        "[spark_sinks]\nmaster = local[1]\ndeduplicate = 0\n"
        "spark_properties = spark.test.list:a,b, spark.eventLog.enabled:true,spark.eventLog.compress:false\n"
        f"spark_properties = spark.eventLog.dir:file://{tmp_path}/events\n"
    )
    arguments = ["--topic", "t", "--output", "parquet:out", "-f", "json"]
    when = datetime.datetime.fromtimestamp(until, datetime.UTC).isoformat()
    done = run(made, "--config-file", "nk.conf", "aggregate", *arguments, "--until", when)
    assert done.returncode == 0, done.stderr[-3000:]
    sums = json.loads(done.stdout)
    assert (sums["read"], sums["decoded"], sums["duplicate"]) == (25, 25, 0)
    logged = "".join(
        path.read_text("utf-8", "replace")
        for path in (tmp_path / "events").rglob("*[!.crc]")
        if path.is_file()
    )
    assert '"spark.test.list":"a,b"' in logged


def test_jars_that_are_not_there(tmp_path: Path, kafka_cluster: Any) -> None:
    made = rig.Rig(tmp_path, url=kafka_cluster.url)
    made.transport.cleanup()
    there = tmp_path / "cache"
    there.touch()
    done = run(
        made,
        *("aggregate", "--checkpoint-dir", "checkpoint"),
        env={"XDG_CACHE_HOME": str(there)},
    )
    assert (done.returncode, done.stdout) == (Exit.MISSING_EXTRA, "")
    assert re.fullmatch(
        r"notifier-kafka: .*jars spark-kafka-4\S* .*cannot be kept in .*; set XDG_CACHE_HOME\n", done.stderr
    )
