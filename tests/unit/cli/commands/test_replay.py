"""Replay: copies of a range of one topic on another topic."""

import time

import pytest

from notifier_kafka.cli.output import text
from notifier_kafka.contract.driver import Record
from tests.unit.cli.cli_runner import CliRunner


def read_records(cli: CliRunner, topic: str) -> list[Record]:
    return [d.record for span in cli.driver.spans([topic]) for d in cli.driver.read(span)]


def test_bytes_keys_headers_and_order_are_kept(cli: CliRunner) -> None:
    sent = [Record("a", b"\xff%d" % n, b"k%d" % (n % 3), (("message-id", b"%d" % n),)) for n in range(2_500)]
    sent.append(Record("a", None, b"k0"))
    cli.driver.admin().create_topic("b", 1)
    cli.put(*sent)
    rows = cli.json("replay", "a", "b")
    assert sum(row["records"] for row in rows) == len(sent)
    found = read_records(cli, "b")
    for key in (b"k0", b"k1", b"k2"):
        assert [r for r in found if r.key == key] == [r._replace(topic="b") for r in sent if r.key == key]
    assert len(read_records(cli, "a")) == len(sent)


def test_a_range_of_time_and_a_dry_run(cli: CliRunner) -> None:
    cli.topic("a", 0)
    cli.put(Record("a", b"before"))
    time.sleep(0.01)
    since = text.iso(time.time())
    time.sleep(0.01)
    cli.put(Record("a", b"within"))
    time.sleep(0.01)
    until = text.iso(time.time())
    time.sleep(0.01)
    cli.put(Record("a", b"after"))
    argv = ("replay", "a", "b", "--since", since, "--until", until)
    expected = [{"topic": "a", "partition": 0, "first": 1, "next": 2, "records": 1}]
    code, _, err = cli.run(*argv, "--dry-run")
    assert (code, err) == (0, "notifier-kafka: a dry run: nothing was published\n")
    assert "b" not in cli.driver.admin().list_topics()
    assert cli.json(*argv) == expected
    assert [record.value for record in read_records(cli, "b")] == [b"within"]


@pytest.mark.parametrize(("since", "first"), [("0", 0), ("3", 3), ("99", 5), ("earliest", 0), ("latest", 5)])
def test_it_begins_at_an_offset_or_an_end(cli: CliRunner, since: str, first: int) -> None:
    cli.topic("a", 0)
    cli.put(*[Record("a", b"%d" % number) for number in range(5)])
    (row,) = cli.json("replay", "a", "b", "--since", since)
    assert (row["first"], row["next"], row["records"]) == (first, 5, 5 - first)
    assert [record.value for record in read_records(cli, "b")] == [
        b"%d" % number for number in range(first, 5)
    ]


def test_a_range_that_ends_before_it_begins_is_empty(cli: CliRunner) -> None:
    cli.topic("a", 5)
    (row,) = cli.json("replay", "a", "b", "--since", "3", "--until", "2000-01-01")
    assert (row["first"], row["next"], row["records"]) == (3, 3, 0)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("a", "a"), "cannot be replayed onto itself"),
        (("c", "b"), "there is no topic 'c'"),
        (("a", "b", "--since", "noon"), "'noon' is none of earliest, latest, an offset or a time"),
        (("a", "b", "--until", "noon"), "'noon' is not a time"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: CliRunner, argv: tuple[str, ...], words: str) -> None:
    cli.topic("a", 1)
    code, said = cli.refused("replay", *argv)
    assert code == 2
    assert words in said
