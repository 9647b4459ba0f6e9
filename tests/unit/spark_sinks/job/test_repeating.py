"""``--every`` and the limits of a run, in this process and without Spark: nothing is there to be read."""

import argparse
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from notifier_kafka.cli.exits import Partial
from notifier_kafka.cli.output import text
from notifier_kafka.errors import TransportUnavailable
from notifier_kafka.publishing import transport
from spark_sinks.cli import aggregate
from spark_sinks.job import job, settings, wiring
from spark_sinks.state import ledger
from tests.shared.spark import rig


@pytest.fixture
def _signals() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def ask_to_end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


class Broken:
    """A sink that fails, in a run during which the program is asked to end."""

    def last(self, job: str) -> NoReturn:
        ask_to_end()
        raise OSError("the disk is gone")

    def write(self, job: str, batch: int, found: pa.Table) -> NoReturn:
        raise AssertionError


def asked(*arguments: str) -> argparse.Namespace:
    nobody: Any = None
    parser = aggregate.Aggregate(nobody, None).get_parser("aggregate")
    return parser.parse_args(["--topic", "t", *arguments])


def run(url: str, directory: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Do what the command does, with a job that has no Spark."""
    args = asked(*arguments)
    lent = transport.get_notification_transport(rig.conf(), url)
    kept = ledger.Ledger(directory / "checkpoint")

    @contextlib.contextmanager
    def open_job(*_: object) -> Iterator[job.Job]:
        with kept.locked({"input": url}, {}):
            yield job.Job(None, lent.driver, kept, (), {"broken": Broken()})

    monkeypatch.setattr(wiring, "open_job", open_job)
    try:
        return aggregate._run(lent.driver, settings.read(rig.conf()), args.topic, args)
    finally:
        lent.cleanup()


@pytest.mark.usefixtures("_signals")
def test_an_output_that_failed_is_in_the_exit_code_of_who_is_asked_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Partial, match="broken: the disk is gone; the other outputs are complete"):
        run(f"sqlite:///{tmp_path}/log.db", tmp_path, monkeypatch, "--every", "1h")


@pytest.mark.usefixtures("_signals")
def test_a_broker_that_is_away_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def note(line: str) -> None:
        said.append(line)
        ask_to_end()

    monkeypatch.setattr(text, "note", note)
    with pytest.raises(TransportUnavailable):
        run("kafka://127.0.0.1:1/", tmp_path, monkeypatch, "--every", "1s")
    assert [line.endswith("; again in 1 seconds") for line in said] == [True]
    with pytest.raises(TransportUnavailable):
        run("kafka://127.0.0.1:1/", tmp_path, monkeypatch)
    assert len(said) == 1


def test_arguments_become_limits(tmp_path: Path) -> None:
    driver = rig.Rig(tmp_path).driver
    chosen = settings.read(rig.conf())
    expected_limits = {
        (): (None, "earliest", None, False),
        ("--since", "end"): (None, "latest", None, False),
        ("--since", "beginning"): (0.0, "earliest", None, False),
        ("--since", "2026-11-18T00:00:00Z"): (1_794_960_000.0, "earliest", None, False),
        ("--max-records", "5", "--allow-loss"): (None, "earliest", 5, True),
    }
    for arguments, expected in expected_limits.items():
        made = aggregate._limits(driver, chosen, asked(*arguments))
        assert (made.since, made.start, made.records, made.allow_loss) == expected
