"""All benchmarks run: every row has a figure. Such small figures mean nothing."""

import json
import pathlib

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import child_protocol, peers
from benchmarks.bare_clients import InvalidMeasurement
from notifier_kafka_drivers.kafka import options

SECTIONS = (
    "kafka-publish",
    "kafka-listen",
    "latency",
    "backlog",
    "sqlite-publish",
    "sqlite-listen",
    "scaling",
)
GROUPS = {
    "publish over Kafka, confluent-kafka",
    "publish over Kafka, kafka-python",
    "listen over Kafka, confluent-kafka",
    "listen over Kafka, kafka-python",
    "end to end at 1,000/s, confluent-kafka",
    "backlog, confluent-kafka: publish one by one",
    "publish over SQLite",
    "listen over SQLite",
    "publish, growing processes",
    "publish, growing payload",
    "publish, growing partitions",
    "publish, growing topics",
    "publish, by option",
}


def test_every_row_has_a_figure(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, page = tmp_path / "found.json", tmp_path / "found.html"
    where = ["--output", str(output), "--page", str(page)]
    benchmarks.main([*SECTIONS, "--tiny", "--no-peers", *where])

    found = json.loads(output.read_text("utf-8"))
    assert {row["group"] for row in found["rows"]} == GROUPS
    assert all(row["figure"]["least"] > 0 for row in found["rows"])
    assert all(row["ratio"]["least"] > 0 for row in found["rows"] if row["beside"])
    assert all(row["met"] in (True, False) for row in found["rows"] if row["target"])
    table = capsys.readouterr().out
    assert all(group in table and group in page.read_text("utf-8") for group in GROUPS)
    assert found["machine"] in table
    assert f"here: confluent-kafka {found['clients']['confluent-kafka']}, kafka-python " in table


def test_sqlite_needs_nothing_of_a_package_index_and_has_rates_to_reach(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    output = tmp_path / "found.json"
    benchmarks.main(["sqlite-publish", "sqlite-listen", "--tiny", "--output", str(output)])

    found = json.loads(output.read_text("utf-8"))
    assert "peers" not in found
    assert not (tmp_path / "cache" / "notifier-kafka").exists()
    rates = {(row["group"], row["name"]): row["target"] for row in found["rows"] if not row["beside"]}
    assert rates["publish over SQLite", "one by one"] == {"sign": "≥", "bound": 30_000}
    assert rates["publish over SQLite", "send_many"] == {"sign": "≥", "bound": 100_000}
    assert rates["listen over SQLite", "batch endpoint"] == {"sign": "≥", "bound": 60_000}


def test_a_caller_and_a_publisher_answer_with_what_they_saw(tmp_path: pathlib.Path) -> None:
    with peers.Child("paced_caller", "sqlite://", str(tmp_path / "spool"), "noop") as caller:
        seen = caller.request("work", 20)
    assert 0 < seen["p50"] <= seen["p99"] <= seen["p99.9"] <= seen["most"]
    with peers.Child("paced_caller", "kafka://127.0.0.1:1", str(tmp_path / "spool"), "messagingv2") as caller:
        assert caller.request("divert", 0) > 0
        assert caller.request("work", 20)["lost"] == 0
    with peers.Child("memory_probe", "sqlite://", str(2**20), "") as publisher:
        publisher.request("prepare", 10)
        held = publisher.request("work", 200)
    assert min(held["before"], held["first"], held["second"]) > 2**20
    assert (held["offered"] > 0, held["lost"]) == (True, 0)


def test_a_child_that_dies_is_told_with_its_last_words() -> None:
    with pytest.raises(InvalidMeasurement, match=r"paced_caller died: TypeError: .* missing"):
        peers.Child("paced_caller")


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmarks.main(["no-such"])
    assert "no benchmark no-such: there are kafka-publish" in capsys.readouterr().err


def test_the_bare_clients_batch_as_the_driver_does() -> None:
    given = {opt.name: opt.default for opt in options.OPTS}

    assert given["linger"] * 1000 == child_protocol.LINGER_MS
    assert given["batch_size"] == child_protocol.BATCH_BYTES
