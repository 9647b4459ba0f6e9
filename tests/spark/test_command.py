"""``notifier-kafka aggregate`` as a program: what it refuses before Spark starts, and how it repeats."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import rig
import test_job
import traffic

from notifier_kafka.cli.exits import Exit

DEADLINE = 300.0
METRICS = "metrics:\n  - {name: count, kind: count, window: 1d}\n"


def command(made: rig.Rig, *arguments: str) -> list[str]:
    program = [sys.executable, "-m", "notifier_kafka.cli.main", "-v", "--transport-url", made.url]
    return [*program, *arguments]


def run(made: rig.Rig, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(made, *arguments),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        cwd=made.directory,
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
        (["--window", "1 minute"], Exit.CONFIGURATION, "window: '1 minute' is no span of time"),
        (["--output", "parqet:x"], Exit.CONFIGURATION, "did you mean parquet?"),
        (["--output", "parquet:taken"], Exit.CONFIGURATION, "taken is not empty and not of this program"),
        (
            ["--checkpoint-dir", "taken"],
            Exit.CONFIGURATION,
            "taken is not empty and not of a job: it holds thesis",
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
    assert not (tmp_path / "checkpoint").exists()


def test_again_and_again_until_it_is_asked_to_end(tmp_path: Path) -> None:
    made = rig.Rig(tmp_path)
    (tmp_path / "m.yaml").write_text(METRICS)
    database = tmp_path / "rows.db"
    arguments = [
        "--topic",
        "t",
        "--metrics",
        "m.yaml",
        "--output",
        f"jdbc:sqlite:{database}",
        "--every",
        "1s",
    ]
    program = command(made, "aggregate", *arguments, "--checkpoint-dir", str(tmp_path / "checkpoint"))
    with (tmp_path / "said").open("w") as said:
        running = subprocess.Popen(program, stderr=said, cwd=tmp_path)
    try:
        for count in (30, 50):
            made.publish(traffic.records(traffic.notifications(count, seed=count)))
            wait(lambda wanted=count: total(database) >= wanted, running)  # type: ignore[misc]
        running.send_signal(signal.SIGTERM)
        assert running.wait(DEADLINE) == 0
    finally:
        running.kill()
        running.wait()
    assert total(database) == 80
    assert sorted(path.name for path in (tmp_path / "checkpoint/plans").iterdir()) == sorted(
        path.name for path in (tmp_path / "checkpoint/counted").iterdir()
    )
    shown = run(made, "metrics", "show", f"jdbc:sqlite:{database}", "-f", "json")
    assert sum(row["value"] for row in json.loads(shown.stdout)) == 80


def total(database: Path) -> float:
    try:
        return sum(test_job.table(database).values()) if database.exists() else 0
    except sqlite3.OperationalError:
        return 0  # the table is not made yet


def wait(condition: Callable[[], bool], running: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert running.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.2)
