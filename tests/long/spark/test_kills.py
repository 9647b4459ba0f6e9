"""Processes that are killed at every step, or asked to end: what comes of it is the truth."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from notifier_kafka.errors import MessagingException
from spark_sinks.language import metrics_file
from tests.shared import terminal
from tests.shared.checkout import ROOT
from tests.shared.spark import recount, rig, traffic
from tests.spark import test_command, test_job

METRICS = """
metrics:
  - {name: count, kind: count, group_by: [event_type], window: 1h}
  - {name: took, kind: max, window: 1h, value: {start: "*.start", end: "*.end", key: $.payload.id}}
"""
COUNT = "metrics:\n  - {name: count, kind: count, window: 1d}\n"
# When a process dies; the next one goes on from there. Each is another step of a batch; those of
# test_chain are the rest.
MOMENTS = [
    ("batch 1: planned", "planned"),
    ("/counted/00000001.json", "its data written, and not yet counted"),
    ("out/_batches/00000001", "counted, and in a sink that is not yet marked"),
]


def configure(made: rig.Rig, outputs: Sequence[str], **options: object) -> None:
    """Write the file that a process finds all of this by."""
    directory = made.directory
    lines = {"metrics_file": directory / "m.yaml", "checkpoint_dir": directory / "checkpoint", **options}
    lines |= {"master": "local[2]", "clock_behind": rig.CLOCK.behind, "clock_ahead": rig.CLOCK.ahead}
    (directory / "nk.conf").write_text(
        f"[DEFAULT]\ntransport_url = {made.url}\n[spark_sinks]\n"
        + "".join(f"{name} = {value}\n" for name, value in lines.items())
        + "".join(f"output = {output}\n" for output in outputs)
    )


def run(made: rig.Rig, moment: str, env: dict[str, str]) -> int:
    directory = made.directory
    command = [sys.executable, str(ROOT / "tests/shared/spark/aggregate_child.py"), moment]
    command += ["--config-file", str(directory / "nk.conf"), "aggregate", "--topic", "t"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, cwd=directory, env=env
    )
    if done.returncode not in (0, -signal.SIGKILL):
        raise AssertionError(done.stderr[-3000:])
    return done.returncode


def test_killed_at_every_step(jvm: Callable[[], dict[str, str]], tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(METRICS)
    made = rig.Rig(tmp_path, metrics_file.read(str(tmp_path / "m.yaml")))
    outputs = [f"parquet:{tmp_path}/out", f"jdbc:sqlite:{tmp_path}/rows.db"]
    configure(made, outputs)
    sent = traffic.records(traffic.notifications(200))
    made.publish(sent[:120])
    plans = set()
    for moment, meaning in MOMENTS:
        assert run(made, moment, jvm()) == -signal.SIGKILL, meaning
        plans.add((tmp_path / "checkpoint/plans/00000001.json").read_text())
    assert len(plans) == 1, "an interrupted batch has the same spans again"
    made.publish([*sent[120:], *sent[100:120]])
    # One that is asked to end does the batch at hand, and leaves the others to the next.
    configure(made, outputs, batch_records=60)
    assert run(made, "SIGTERM batch 2: read", jvm()) == 0
    assert made.ledger.last() == 2
    assert (tmp_path / "out/_batches/00000002").exists()
    assert run(made, "", jvm()) == 0
    assert made.ledger.last() > 2
    found = made.parquet("out")
    assert recount.compare(found, made.truth(), made.metrics) == []
    assert test_job.table(tmp_path / "rows.db") == found
    assert os.listdir(tmp_path / "checkpoint/plans") == os.listdir(tmp_path / "checkpoint/counted")


def test_again_and_again_until_it_is_asked_to_end(jvm: Callable[[], dict[str, str]], tmp_path: Path) -> None:
    made = rig.Rig(tmp_path)
    (tmp_path / "m.yaml").write_text(COUNT)
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
    program = test_command.command(
        made, "aggregate", *arguments, "--checkpoint-dir", str(tmp_path / "checkpoint")
    )
    screen, its = os.openpty()
    termios.tcsetwinsize(its, (24, 120))  # the bar and all that is said of it
    running = subprocess.Popen(program, stderr=its, cwd=tmp_path, env=jvm() | {"TERM": "xterm"})
    os.close(its)
    seen = bytearray()
    reader = threading.Thread(target=read, args=(screen, seen))
    reader.start()
    try:
        for count in (30, 50):
            made.publish(traffic.records(traffic.notifications(count, seed=count)))
            wait(lambda wanted=count: total(database) >= wanted, running)  # type: ignore[misc]
        running.send_signal(signal.SIGTERM)
        assert running.wait(test_command.DEADLINE) == 0
    finally:
        running.kill()
        running.wait()
        reader.join()
        os.close(screen)
    assert total(database) == 80
    # A bar while it works, drawn over by the sums.
    assert re.search(rb"\r\x1b\[K[^\r\n]* 0 of 3\d records, batch 1, \d+ of \d+ tasks", seen)
    assert re.search(rb"\r\x1b\[Knotifier-kafka: t\.info\[\d\]: offsets 0 to \d+\r\n", seen)
    assert re.search(rb" read in 1 batch: 30 counted, \d malformed, 0 duplicate; ", seen)
    assert sorted(path.name for path in (tmp_path / "checkpoint/plans").iterdir()) == sorted(
        path.name for path in (tmp_path / "checkpoint/counted").iterdir()
    )
    shown = test_command.run(made, "metrics", "show", f"jdbc:sqlite:{database}", "-f", "json")
    assert sum(row["value"] for row in json.loads(shown.stdout)) == 80


def read(screen: int, seen: bytearray) -> None:
    for part in terminal.shown(screen):
        seen.extend(part)


def total(database: Path) -> float:
    try:
        return sum(test_job.table(database).values()) if database.exists() else 0
    except sqlite3.OperationalError:
        return 0  # the table is not made yet


def wait(condition: Callable[[], bool], running: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + test_command.DEADLINE
    while not condition():
        assert running.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_python_workers_that_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    """A job that lost those who read for it says so in a line; the next one counts everything once."""
    made = rig.Rig(tmp_path, test_job.FEW[:1])
    sent = traffic.records(traffic.notifications(100))
    made.publish(sent)
    output = f"jdbc:sqlite:{tmp_path}/rows.db"
    killed: list[int] = []
    ended = threading.Event()
    killing = threading.Thread(target=lambda: kill_workers(killed, ended))
    killing.start()
    try:
        with pytest.raises(MessagingException) as caught:
            made.run(spark, rig.limits(), [output])
    finally:
        ended.set()
        killing.join()
    assert killed
    assert "\n" not in str(caught.value)
    assert made.ledger.last() == 0
    assert made.run(spark, rig.limits(), [output]).read == len(sent)
    assert recount.compare(test_job.table(tmp_path / "rows.db"), made.truth(), made.metrics) == []


def kill_workers(killed: list[int], ended: threading.Event) -> None:
    # A worker imports all of this package before it reads; who looks oftener takes a processor from it.
    while not ended.wait(0.02):
        for pid in workers(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)


def workers(root: int, below_daemon: bool = False) -> Iterator[int]:
    """Find what Spark's daemon for Python forked, below a process of ours."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                is_daemon = b"pyspark.daemon" in Path(f"/proc/{child}/cmdline").read_bytes()
                if is_daemon and below_daemon:
                    yield child
                else:
                    yield from workers(child, is_daemon)
