"""Outputs that are servers, real ones: PostgreSQL, and a topic of Kafka's."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib import parse

import pg8000.dbapi
import pytest

from notifier_kafka.errors import (
    ConfigurationError,
    DriverLoadFailure,
    MessagingException,
    TransportUnavailable,
)
from spark_sinks.language import metrics_file
from spark_sinks.outputs import kafka, postgresql, reader, secret_masking, sink
from tests.long.spark import test_kills
from tests.shared.checkout import ROOT
from tests.shared.spark import rig, server, traffic
from tests.unit.spark_sinks.outputs import test_sinks

ODD = "a\x00b é ' \" \\ ; DROP TABLE metric_rows; --" + "x" * 20_000


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server.postgresql() as found:
        yield found


@pytest.fixture
def output(url: str) -> Iterator[str]:
    yield f"jdbc:{url}"
    execute(url, "DROP TABLE IF EXISTS metric_rows; DROP TABLE IF EXISTS metric_batches")


def execute(url: str, statement: str) -> None:
    connection = server.connect(parse.urlsplit(url).port or 0, server.DATABASE)
    connection.cursor().execute(statement)
    connection.commit()
    connection.close()


def asked(url: str, question: str) -> list[Any]:
    with contextlib.closing(server.connect(parse.urlsplit(url).port or 0, server.DATABASE)) as connection:
        cursor = connection.cursor()
        cursor.execute(question)
        return list(cursor.fetchall())


def test_a_batch_that_is_written_again(output: str) -> None:
    one = sink.load(output, rig.conf())
    assert one.last("me") == 0
    group = {"odd": ODD, "none": None}
    one.write(
        "me", 1, test_sinks.made(("m", 0, group, 1.0), ("m", 0, {}, 2.0), ("m", 1, group, float("inf")))
    )
    one.write("me", 1, test_sinks.made(("m", 0, group, 1.0), ("m", 0, {}, 2.0), ("m", 1, group, 1e-300)))
    # Of window 0 one row is gone: what comes replaces all that there was.
    one.write("me", 2, test_sinks.made(("m", 0, group, 0.1)))
    assert sink.load(output, rig.conf()).last("me") == 2
    spelled = json.dumps(group, sort_keys=True)
    assert reader.read(output, "m*", None, None) == [
        ("m", "2026-11-18T07:00:00Z", "2026-11-18T08:00:00Z", spelled, 0.1, "B"),
        ("m", "2026-11-18T08:00:00Z", "2026-11-18T09:00:00Z", spelled, 1e-300, "B"),
    ]
    with pytest.raises(ConfigurationError, match="belongs to another job; name another database"):
        one.last("you")


def test_a_batch_that_is_too_large_for_one_statement(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "STATEMENT_CHARACTERS", 1000)
    one = sink.load(output, rig.conf())
    one.last("me")
    for batch, count in ((1, 60), (2, 50)):
        groups: list[dict[str, str | None]] = [{"n": f"{number}"} for number in range(count)]
        found = test_sinks.made(*(("m", n % 3, group, float(batch)) for n, group in enumerate(groups)))
        listed = postgresql.batch_texts(found)
        assert len(listed) > 5
        assert max(map(len, listed)) <= 1000 + len("[]")
        one.write("me", batch, found)
    there = reader.read(output, "*", None, None)
    assert (len(there), {row[4] for row in there}) == (50, {2.0})


def test_groups_are_told_apart_by_a_hash_that_nobody_can_fake(output: str, url: str) -> None:
    """The table of an earlier release gets another index."""
    execute(url, postgresql.TABLES[0])
    execute(url, """CREATE UNIQUE INDEX metric_rows_key ON metric_rows (metric, md5("group"))""")
    one = sink.load(output, rig.conf())
    one.last("me")
    question = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'metric_rows'"
    ((name, made),) = asked(url, question)
    assert (name, "UNIQUE" in made, "sha256" in made, "md5" in made) == (
        "metric_rows_unique",
        True,
        True,
        False,
    )
    groups: list[dict[str, str | None]] = [{"n": text} for text in ("\\", "\\\\", "\\134", "é", "\\u00e9")]
    one.write("me", 1, test_sinks.made(*(("m", 0, group, 1.0) for group in groups)))
    assert len(reader.read(output, "*", None, None)) == len(groups)
    with pytest.raises(MessagingException, match="duplicate key"):
        one.write("me", 2, test_sinks.made(*[("m", 0, groups[2], 1.0)] * 2))


def test_a_batch_is_there_as_a_whole_or_not_at_all(output: str, url: str) -> None:
    one = sink.load(output, rig.conf())
    one.last("me")
    one.write("me", 1, test_sinks.made(("m", 0, {}, 1.0)))
    # What fails last is the note of the batch.
    execute(url, "ALTER TABLE metric_batches ADD CHECK (batch < 2)")
    with pytest.raises(Exception, match="violates check constraint"):
        one.write("me", 2, test_sinks.made(("m", 0, {}, 2.0), ("m", 1, {}, 2.0)))
    assert [row[4] for row in reader.read(output, "*", None, None)] == [1.0]
    assert one.last("me") == 1


def test_a_server_that_goes_away_in_a_batch_and_comes_back(output: str, url: str) -> None:
    one = sink.load(output, rig.conf())
    one.last("me")
    one.write("me", 1, test_sinks.made(("m", 0, {}, 1.0)))
    failures: list[MessagingException] = []

    def write() -> None:
        try:
            one.write("me", 2, test_sinks.made(("m", 0, {}, 2.0), ("m", 1, {}, 2.0)))
        except MessagingException as error:
            failures.append(error)

    holder = server.connect(parse.urlsplit(url).port or 0, server.DATABASE)
    holder.cursor().execute("LOCK TABLE metric_batches")
    writing = threading.Thread(target=write)
    writing.start()
    # It waits where all but the note of the batch is written; a server of which a process dies starts anew.
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while not (found := asked(url, waiting)):
        time.sleep(0.05)
    os.kill(found[0][0], signal.SIGKILL)
    writing.join()
    with contextlib.suppress(pg8000.dbapi.Error):
        holder.close()
    (failure,) = failures
    assert "\n" not in str(failure)
    assert "cr/et" not in str(failure)
    while True:
        with contextlib.suppress(MessagingException):
            assert one.last("me") == 1
            break
        time.sleep(0.1)
    assert [row[4] for row in reader.read(output, "*", None, None)] == [1.0]
    write()
    assert [row[4] for row in reader.read(output, "*", None, None)] == [2.0, 2.0]


def test_a_server_that_is_away_when_a_run_begins(
    jvm: Callable[[], dict[str, str]], output: str, url: str, tmp_path: Path
) -> None:
    (tmp_path / "m.yaml").write_text("metrics:\n  - {name: count, kind: count, window: 1h}\n")
    made = rig.Rig(tmp_path, metrics_file.read(str(tmp_path / "m.yaml")))
    made.publish(traffic.records(traffic.notifications(30)))
    test_kills.configure(made, [output, f"parquet:{tmp_path}/out"])
    with contextlib.closing(server.connect(parse.urlsplit(url).port or 0, "postgres")) as door:
        door.autocommit = True
        allow = f"ALTER DATABASE {server.DATABASE} ALLOW_CONNECTIONS"
        door.cursor().execute(f"{allow} false")
        try:
            with pytest.raises(AssertionError, match="not currently accepting connections") as caught:
                test_kills.run(made, "", jvm())
        finally:
            door.cursor().execute(f"{allow} true")
    assert f"jdbc:postgresql://{server.USER}:***@" in str(caught.value)
    assert "the other outputs are complete" in str(caught.value)
    assert made.parquet("out") == made.truth()
    assert test_kills.run(made, "", jvm()) == 0
    rows = reader.read(output, "*", None, None)
    assert rows == reader.read(f"parquet:{tmp_path}/out", "*", None, None)


def test_two_that_make_the_tables_at_once(output: str) -> None:
    found: list[Any] = []
    ask = lambda: found.append(sink.load(output, rig.conf()).last("me"))  # noqa: E731 - it is short
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 4


def test_what_is_wrong_is_said_in_a_line_without_the_password(
    output: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(url, "CREATE TABLE metric_rows (a int, b int)")
    with pytest.raises(ConfigurationError, match="the table metric_rows has the columns a, b, not metric"):
        sink.load(output, rig.conf()).last("me")
    parts = parse.urlsplit(url)
    wrong = {
        url.replace("se%3Acr", "wrong"): (ConfigurationError, "password authentication failed"),
        url.replace("/metrics", "/none"): (ConfigurationError, 'database "none" does not exist'),
        url.replace(f":{parts.port}", ":1"): (TransportUnavailable, "127.0.0.1"),
        url + "?sslmode=require": (TransportUnavailable, "SSL"),
    }
    for bad, (kind, said) in wrong.items():
        with pytest.raises(kind, match=said) as caught:
            sink.load(f"jdbc:{bad}", rig.conf()).last("me")
        assert "cr/et" not in str(caught.value)
        assert "\n" not in str(caught.value)
    # The password may also stand where psql looks for it.
    monkeypatch.setenv("PGPASSWORD", server.PASSWORD)
    assert postgresql.connection_arguments(url.replace(":se%3Acr%2Fet", ""))["password"] == server.PASSWORD


@pytest.mark.parametrize(
    "place",
    ["postgresql:", "postgresql://h", "postgresql://h:x/d", "postgresql://h/d?a=b", "postgresql:///d"],
)
def test_urls_that_name_no_database(place: str) -> None:
    with pytest.raises(ConfigurationError, match="output jdbc:postgresql:"):
        sink.load(f"jdbc:{place}", rig.conf())


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pg8000.dbapi", None)
    with pytest.raises(DriverLoadFailure, match=r"pip install 'notifier-kafka\[postgresql\]'"):
        sink.load("jdbc:postgresql://u@h/d", rig.conf()).last("me")


def test_names_of_outputs_hide_passwords() -> None:
    assert secret_masking.output("jdbc:postgresql://u:p@h/d?password=q&a=b") == (
        "jdbc:postgresql://u:***@h/d?password=***&a=b"
    )
    for told in ("?password=p;q", "?a=b;c&pass%77ord=p", "?a=b;password=p"):
        masked = secret_masking.output(f"jdbc:postgresql://h/d{told}")
        assert masked == f"jdbc:postgresql://h/d{told.rpartition('=')[0]}=***"
    assert secret_masking.output("jdbc:postgresql:\n//u:p@h/d") == "jdbc:postgresql://u:***@h/d"
    assert secret_masking.output("kafka://u:p@h:1,v:q@g/t") == "kafka://u:***@g/t"
    assert secret_masking.output("parquet:/a:b@c") == "parquet:/a:b@c"
    # Also those that were not encoded.
    for odd in ("u:12/secret@h/d", "u:p/w@h/d", "u:p?a=b@h/d", "u:p#w@h/d", "u:p@w@h/d", ":p@h/d"):
        user = odd.partition(":")[0]
        assert secret_masking.output(f"jdbc:postgresql://{odd}") == f"jdbc:postgresql://{user}:***@h/d"


@pytest.mark.parametrize("odd", ["u:12/secret@h/d", "u:p/secret@h/d", "u:5?secret=b@h/d", "u:5#secret@h/d"])
def test_a_password_that_is_not_encoded(odd: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write @ / .* as %40") as caught:
        sink.load(f"jdbc:postgresql://{odd}", rig.conf())
    assert "secret" not in str(caught.value)


def test_what_is_encrypted() -> None:
    modes = {"": None, "?sslmode=prefer": None, "?sslmode=disable": False}
    for query, context in modes.items():
        assert postgresql.connection_arguments(f"postgresql://u@h/d{query}")["ssl_context"] is context
    strict = postgresql.connection_arguments("postgresql://u@h/d?sslmode=verify-full")["ssl_context"]
    assert strict.check_hostname
    assert not postgresql.connection_arguments("postgresql://u@h/d?sslmode=require")[
        "ssl_context"
    ].check_hostname


def rows(made: rig.Rig, topic: str) -> list[dict[str, Any]]:
    return [json.loads(each.record.value or b"") for each in made.deliveries([topic])]


def test_rows_to_a_topic(tmp_path: Path, kafka_cluster: Any) -> None:
    made = rig.Rig(tmp_path, url=kafka_cluster.url)
    output = f"{kafka_cluster.url.rstrip('/')}/metrics.out"
    one = sink.load(output, rig.conf())
    assert one.last("me") == 0
    one.write("me", 1, test_sinks.made(("m", 0, test_sinks.GROUP, 1.0), ("m", 1, {}, 2.0)))
    assert sink.load(output, rig.conf()).last("me") == 1
    # An attempt that is killed between sending and commit: nothing of it is there, it hides nothing
    # that comes after it, and nobody waits until the broker gives it up.
    child = [sys.executable, "-m", "tests.shared.spark.torn_child", output]
    killed = subprocess.run(child, cwd=ROOT, timeout=300, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert sink.load(output, rig.conf()).last("me") == 1
    one.write("me", 2, test_sinks.made(("m", 0, test_sinks.GROUP, 3.0)))
    assert sink.load(output, rig.conf()).last("me") == 2
    found = sorted(rows(made, "metrics.out"), key=lambda row: row["value"])
    assert [(row["value"], row["batch"]) for row in found] == [(1.0, 1), (2.0, 1), (3.0, 2)]
    assert found[0] | {"value": 0, "batch": 0} == {
        "metric": "m",
        "unit": "B",
        "window_start": "2026-11-18T07:00:00Z",
        "window_end": "2026-11-18T08:00:00Z",
        "group": test_sinks.GROUP,
        "value": 0,
        "batch": 0,
    }
    # Rows of the same metric, window and group have the same key: a compacted topic keeps the last.
    keys = {each.record.key for each in made.deliveries(["metrics.out"])}
    assert len(keys) == 2
    with pytest.raises(ConfigurationError, match=r"topic metrics\.out belongs to another job"):
        one.last("you")
    made.transport.cleanup()


def test_a_topic_is_needed(tmp_path: Path) -> None:
    (tmp_path / "nk.conf").write_text("[DEFAULT]\ntransport_url = kafka://h/\n")
    conf = rig.conf(str(tmp_path / "nk.conf"))
    assert isinstance(sink.load("kafka:t", conf), kafka.KafkaSink)
    for output in ("kafka:", "kafka://h/", "kafka://u:pw@h"):
        with pytest.raises(ConfigurationError, match="output kafka: on kafka://") as caught:
            sink.load(output, conf)
        assert "pw" not in str(caught.value)
