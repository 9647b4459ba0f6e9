"""The command line as users run it: with processes, pipes, signals and an SQLite file."""

import contextlib
import csv
import datetime
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

TIMEOUT_SECONDS = 60.0


class Cli:
    """Runs the program on a new SQLite log, in a new home directory."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.url = f"sqlite:///{home}/log.db"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "PYTHONWARNINGS": "error::ResourceWarning",
        }
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, url: str | None = "", **kwargs: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "notifier_kafka.cli.main"]
        if url is not None:
            command += ["--transport-url", url or self.url]
        pipe = subprocess.PIPE
        settings = {"stdin": pipe, "stdout": pipe, "stderr": pipe} | kwargs
        process = subprocess.Popen([*command, *arguments], env=self.environment, text=True, **settings)
        self.started.append(process)
        return process

    def run(
        self, *arguments: str, given: str = "", url: str | None = "", **kwargs: Any
    ) -> tuple[int, str, str]:
        process = self.start(*arguments, url=url, **kwargs)
        out, err = process.communicate(given, timeout=TIMEOUT_SECONDS)
        return process.returncode, out, err

    def rows(self, *arguments: str, **kwargs: Any) -> Any:
        code, out, err = self.run(*arguments, "--json", **kwargs)
        assert (code, err) == (0, "")
        return json.loads(out)

    def lines(self, *arguments: str) -> list[dict[str, Any]]:
        """Return all notifications of the log, as ``listen`` without a pool prints them."""
        code, out, err = self.run("listen", "--from", "beginning", "--timeout", "0.5", *arguments)
        assert (code, err) == (0, "")
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def cli(tmp_path: pathlib.Path) -> Iterator[Cli]:
    made = Cli(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


def write_malformed(cli: Cli, *values: bytes | None) -> None:
    from oslo_config import cfg

    from notifier_kafka.driver import Limits, Record
    from notifier_kafka.publishing import transport

    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    lent = transport.get_notification_transport(conf, cli.url)
    publisher = lent.driver.publisher(lambda _record, error: pytest.fail(str(error)), Limits())
    for value in values:
        publisher.offer(Record("notifications.info", value))
    assert publisher.flush(TIMEOUT_SECONDS) == 0
    publisher.close()
    lent.cleanup()


@contextlib.contextmanager
def published_to(cli: Cli, prefix: str) -> Iterator[None]:
    """Publish to the topic with this prefix, as soon as it exists and until the block ends."""
    from oslo_config import cfg

    from notifier_kafka.publishing import notifier, transport

    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    lent = transport.get_notification_transport(conf, cli.url)
    ended = threading.Event()

    def publish() -> None:
        while not ended.wait(0.001):
            for name in lent.driver.admin().list_topics():
                if name.startswith(prefix) and name.endswith(".info"):
                    made = notifier.Notifier(
                        lent, "stranger", driver="messagingv2", topics=[name.removesuffix(".info")]
                    )
                    made.info({}, "a.stranger's", {})

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        lent.cleanup()


def test_what_was_sent_is_listened_to(cli: Cli) -> None:
    (row,) = cli.rows(
        "send", '{"a": "ä"}', "--event-type", "t.e", "--publisher-id", "p.h", "--priority", "error"
    )
    assert row["topic"] == "notifications.error"
    (found,) = cli.lines()
    assert found["payload"] == {"a": "ä"}
    assert (found["event_type"], found["publisher_id"], found["priority"]) == ("t.e", "p.h", "ERROR")
    assert {name: found[name] for name in row} == row
    assert found["context"] == {}
    assert found["message_id"]
    assert found["recorded_at"].endswith("Z")


def test_lines_to_several_topics_in_every_format(cli: Cli) -> None:
    given = "".join(f'{{"n": {n}}}\n' for n in range(1_200))
    code, out, err = cli.run(
        "send", "--lines", "-", "--topic", "a", "--topic", "b", "-f", "value", given=given
    )
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 2_400
    assert [each["payload"]["n"] for each in cli.lines("--topic", "b")] == list(range(1_200))
    listed = cli.rows("topics", "list")
    assert {row["name"]: row["records"] for row in listed if row["records"]} == {
        "a.info": 1_200,
        "b.info": 1_200,
    }
    code, out, _ = cli.run("topics", "list", "-f", "csv")
    assert out.splitlines()[0] == '"name","partitions","records"'
    code, out, _ = cli.run("topics", "list")
    assert "| a.info " in out


def test_a_key_keeps_one_partition(cli: Cli) -> None:
    given = "\n".join(str(n) for n in range(20))
    rows = cli.rows("send", "--lines", "-", "--key", "same", given=given)
    assert len({row["partition"] for row in rows}) == 1


def test_a_bad_line_after_good_ones_is_partial_and_says_what_was_sent(cli: Cli) -> None:
    process = cli.start("send", "--lines", "-", "-f", "value")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"n": 1}\n')
    process.stdin.flush()
    assert process.stdout.readline().startswith("notifications.info ")
    out, err = process.communicate("no json\n", timeout=TIMEOUT_SECONDS)
    assert process.returncode == 4, err
    assert out == ""
    assert err.startswith("notifier-kafka: stopped after 1 sent: standard input, line 2 is not JSON")
    assert err.count("\n") == 1
    assert len(cli.lines()) == 1


def test_text_is_sent_as_a_string_and_cannot_steer_the_terminal(cli: Cli) -> None:
    hostile = "\x1b[2J\x9b\u202e\x7f"
    assert cli.run("send", "--text", hostile)[0] == 0
    code, out, _ = cli.run("listen", "--from", "beginning", "--max", "1")
    assert code == 0
    assert out.removesuffix("\n").isprintable()
    assert out.isascii()
    assert json.loads(out)["payload"] == hostile


def test_a_log_that_cannot_be_used_is_3_and_a_lone_line(cli: Cli) -> None:
    (cli.home / "foreign").write_bytes(b"this is no database " * 100)
    for arguments in (("send", "1"), ("listen", "--max", "1"), ("topics", "list")):
        code, out, err = cli.run(*arguments, url=f"sqlite:///{cli.home}/foreign")
        assert (code, out) == (3, "")
        assert err.startswith("notifier-kafka: ")
        assert "foreign" in err
        assert err.count("\n") == 1


def test_a_log_that_another_program_keeps_locked_is_3(cli: Cli) -> None:
    assert cli.run("send", "1")[0] == 0
    ini = cli.home / "hasty.conf"
    ini.write_text("[notifications]\nwait_timeout = 0.5\nexit_timeout = 0.1\n")
    with contextlib.closing(sqlite3.connect(cli.home / "log.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        listened = cli.run("listen", "--pool", "p", url=f"{cli.url}?busy_timeout=0.2")
        sent = cli.run("send", "2", "--config-file", str(ini))
    for (code, out, err), said in ((listened, "locked"), (sent, "not durable within 0.5 s")):
        assert (code, out) == (3, "")
        assert said in err.splitlines()[-1]
        assert "Traceback" not in err


def test_a_misspelt_option_in_the_url_is_5_for_every_command(cli: Cli) -> None:
    for arguments in (("send", "1"), ("listen", "--max", "1"), ("topics", "list")):
        code, out, err = cli.run(*arguments, url=f"{cli.url}?partitons=3")
        assert (code, out) == (5, "")
        assert "did you mean partitions?" in err
        assert err.count("\n") == 1


def test_the_configuration_is_obeyed_and_an_absent_one_is_the_embedded_log(cli: Cli) -> None:
    ini = cli.home / "service.conf"
    ini.write_text(f"[DEFAULT]\ntransport_url = {cli.url}\n[notifications]\ntopics = ours\n")
    (row,) = cli.rows("send", "1", "--config-file", str(ini), url=None)
    assert row["topic"] == "ours.info"
    assert [row["name"] for row in cli.rows("topics", "list")] == ["ours.info"]
    (row,) = cli.rows("send", "2", url=None)
    assert (cli.home / "data" / "notifier-kafka" / "notifications.db").is_file()


def test_a_channel_that_puts_nothing_on_a_log_is_no_success(cli: Cli) -> None:
    ini = cli.home / "noop.conf"
    ini.write_text("[notifications]\ndriver = noop\n")
    code, out, err = cli.run("send", "1", "--config-file", str(ini))
    assert (code, out.strip()) == (5, "")
    assert "do not publish to the log" in err


def test_malformed_records_are_noted_and_cost_no_neighbour(cli: Cli) -> None:
    cli.run("send", "1")
    write_malformed(cli, b"\xff", None, b'{"\x1b[2J": 1}')
    cli.run("send", "2")
    code, out, err = cli.run("listen", "--from", "beginning", "--timeout", "0.5")
    assert code == 0
    assert sorted(json.loads(line)["payload"] for line in out.splitlines()) == [1, 2]
    notes = err.splitlines()
    assert len(notes) == 3
    assert all(note.startswith("notifier-kafka: notifications.info, partition ") for note in notes)
    assert all(note.isprintable() for note in notes)


def test_filters_and_starts(cli: Cli) -> None:
    for priority in ("info", "error"):
        for kind in ("vm.start", "vm.end"):
            cli.run("send", "1", "--priority", priority, "--event-type", kind)
    assert len(cli.lines("--priority", "error")) == 2
    assert len(cli.lines("--priority", "error", "--priority", "info", "--event-type", r"vm\.end$")) == 2
    assert len(cli.lines("--max", "3")) == 3
    assert cli.lines("--from", "2100-01-01") == []
    assert len(cli.lines("--from", "2020-01-01")) == 4


def test_the_last_ones_and_what_comes(cli: Cli) -> None:
    cli.run("send", "--lines", "-", given="\n".join(str(n) for n in range(40)))
    seen = cli.home / "seen"
    with seen.open("w") as stream:
        onlooker = cli.start("tail", "-n", "5", stdout=stream)

    def payloads() -> list[Any]:
        return [json.loads(line)["payload"] for line in _whole(seen)]

    until(lambda: len(payloads()) == 5)
    cli.run("send", "--lines", "-", given="\n".join(str(n) for n in range(40, 60)))
    until(lambda: len(payloads()) >= 25)
    onlooker.send_signal(signal.SIGTERM)
    _, err = onlooker.communicate(timeout=TIMEOUT_SECONDS)
    assert (onlooker.returncode, err) == (0, "")
    assert sorted(payloads()) == list(range(35, 60))
    assert sorted(each["payload"] for each in cli.lines("--from", "-3")) == [57, 58, 59]
    assert len(cli.lines("--from", "-3", "--max", "2")) == 2
    assert cli.run("listen", "--pool", "p", "--from", "-3")[0] == 2


def test_a_range_of_time(cli: Cli) -> None:
    cli.run("send", "1")
    (first,) = cli.lines()
    cli.run("send", "2")
    _, second = cli.lines()
    assert [
        each["payload"] for each in cli.lines("--from", "beginning", "--until", second["recorded_at"])
    ] == [1]
    after = cli.lines("--from", second["recorded_at"], "--until", _later(second["recorded_at"]))
    assert [each["payload"] for each in after] == [2]
    assert first["recorded_at"] < second["recorded_at"]
    for arguments in (("--until", "2100-01-01"), ("--until", "2020-01-01", "--pool", "p")):
        code, out, err = cli.run("listen", *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("notifier-kafka: listen: ")


def test_fields_choose(cli: Cli) -> None:
    cli.run("send", '{"order": {"id": 17, "who": "me"}}')
    cli.run("send", '{"order": {"id": 170}}')
    cli.run("send", '"order"')
    assert len(cli.lines("--where", "payload.order.id=17")) == 2
    (found,) = cli.lines("--where", "payload.order.id=17$", "--where", "publisher_id=notifier")
    assert found["payload"]["order"]["who"] == "me"
    assert cli.lines("--where", "payload.order.who=.*", "--where", "payload.order.id=18") == []
    assert cli.lines("--where", "payload.order.id=7") == []
    code, _, err = cli.run("listen", "--where", "payload")
    assert code == 2
    assert "is not FIELD=RE" in err


@pytest.mark.parametrize("form", ["csv", "table", "value"])
def test_other_formats_cannot_steer_the_terminal_either(cli: Cli, form: str) -> None:
    hostile = "a\x1b[2J\x9b\u202e\x7f\r\nb"
    cli.run("send", "--text", hostile, "--event-type", hostile, "--publisher-id", hostile)
    code, out, err = cli.run("listen", "--from", "beginning", "--max", "1", "-f", form)
    assert (code, err) == (0, "")
    lines = out.removesuffix("\n").split("\n")
    assert len(lines) == (1 if form == "value" else 2)
    assert all(line.isprintable() for line in lines)
    assert "\\x1b[2J" in lines[-1]
    if form == "csv":
        header, row = csv.reader(lines)
        assert dict(zip(header, row, strict=True))["topic"] == "notifications.info"


def test_csv_has_no_formula_of_a_stranger(cli: Cli) -> None:
    cli.run("send", "--text", "=cmd()", "--event-type", "@SUM(1)", "--publisher-id", "+1+2")
    _, out, _ = cli.run("listen", "--from", "beginning", "--max", "1", "-f", "csv")
    header, row = csv.reader(out.splitlines())
    found = dict(zip(header, row, strict=True))
    assert (found["payload"], found["event_type"], found["publisher_id"]) == ("'=cmd()", "'@SUM(1)", "'+1+2")
    assert found["offset"] == "0"


@pytest.mark.parametrize("arguments", [(), ("--from", "end")])
def test_an_onlooker_begins_at_the_end_and_ends_on_sigterm(cli: Cli, arguments: tuple[str, ...]) -> None:
    cli.run("send", '"before"')
    seen = cli.home / "seen"
    with seen.open("w") as stream:
        onlooker = cli.start("listen", *arguments, stdout=stream)

    def poke() -> str:
        cli.run("send", '"after"')
        return seen.read_text()

    until(poke)
    onlooker.send_signal(signal.SIGTERM)
    _, err = onlooker.communicate(timeout=TIMEOUT_SECONDS)
    assert (onlooker.returncode, err) == (0, "")
    payloads = [json.loads(line)["payload"] for line in seen.read_text().splitlines()]
    assert set(payloads) == {"after"}


def test_a_pool_goes_on_where_its_last_member_ended(cli: Cli) -> None:
    cli.run("send", "--lines", "-", given="\n".join(str(n) for n in range(30)))
    found: list[int] = []
    for arguments in (("--max", "10"), ("--max", "5"), ("--timeout", "0.5")):
        code, out, err = cli.run("listen", "--pool", "p", *arguments)
        assert (code, err) == (0, "")
        found += [json.loads(line)["payload"] for line in out.splitlines()]
    assert sorted(found) == list(range(30))
    assert len(cli.lines()) == 30


def test_what_a_killed_member_did_not_write_comes_to_the_next(cli: Cli) -> None:
    # A killed member loses its partitions after two seconds instead of ten.
    cli.url += "?session_timeout=2"
    cli.run("send", "--lines", "-", given="\n".join(str(n) for n in range(3_000)))
    victim = cli.start("listen", "--pool", "p")
    assert victim.stdout is not None
    # Its pipe fills up, which stops it within a batch.
    written = [victim.stdout.readline()]
    victim.kill()
    written += victim.stdout.readlines()
    whole = [line for line in written if line.endswith("\n")]
    rest = cli.home / "rest"
    with rest.open("w") as stream:
        heir = cli.start("listen", "--pool", "p", stdout=stream)
    until(lambda: {json.loads(line)["payload"] for line in whole + _whole(rest)} == set(range(3_000)))
    heir.send_signal(signal.SIGTERM)
    assert heir.wait(TIMEOUT_SECONDS) == 0


def test_what_a_reader_left_unread_comes_to_the_next_member(cli: Cli) -> None:
    cli.run("send", "--lines", "-", given="\n".join(str(n) for n in range(50)))
    left = cli.start("listen", "--pool", "p")
    assert left.stdout is not None
    left.stdout.close()
    assert left.wait(TIMEOUT_SECONDS) == 141
    code, out, _ = cli.run("listen", "--pool", "p", "--max", "50")
    assert code == 0
    assert {json.loads(line)["payload"] for line in out.splitlines()} == set(range(50))


def test_ctrl_c_ends_with_130_and_no_traceback(cli: Cli) -> None:
    process = cli.start("listen")
    until(lambda: _catches(process.pid, signal.SIGTERM))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, out, err) == (130, "", "")


def test_ctrl_c_while_sending(cli: Cli) -> None:
    process = cli.start("send", "--lines", "-", "-f", "value")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("1\n")
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT_SECONDS) == 130
    assert process.stderr is not None
    assert process.stderr.read() == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("listen", "--from", "beginning"),
        ("listen", "--from", "beginning", "-f", "csv"),
        ("tail", "-n", "2000"),
        ("top", "--interval", "0.5"),
        ("send", "--lines", "@lines"),
        ("topics", "list"),
        ("config", "sample"),
        ("doctor",),
        ("complete",),
        ("aggregate", "--dry-run", "--json"),
        ("--help",),
    ],
)
def test_a_reader_that_leaves_gets_no_traceback(cli: Cli, arguments: tuple[str, ...]) -> None:
    (cli.home / "lines").write_text("\n".join(f'"{n:0200d}"' for n in range(2_000)))
    cli.run("send", "--lines", "@lines", cwd=cli.home)
    process = cli.start(*arguments, cwd=cli.home)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(TIMEOUT_SECONDS) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_the_demonstration_reconciles_without_spark(cli: Cli) -> None:
    code, out, err = cli.run("demo", "--count", "2000", "--no-spark", url=None)
    assert code == 0, err
    assert "notifications: 2,000 published = 2,000 handled; 0 lost" in out
    assert "malformed: 5 published = 5 set aside" in out
    assert "duplicate: 4 published = 4 redelivered" in out
    assert "compute.instance.create.start" in out
    assert "aggregated" not in out
    assert "\r" not in err
    assert "WARNING" not in err


def test_the_demonstration_publishes_no_faster_than_its_log_takes(cli: Cli) -> None:
    cli.environment["OS_NOTIFICATIONS__OUTBOX_RECORDS"] = "1500"
    code, out, err = cli.run("demo", "--count", "50000", "--no-spark", url=None)
    assert code == 0, err
    assert "notifications: 50,000 published = 50,000 handled; 0 lost" in out


def test_the_demonstration_on_a_log_leaves_no_topic_behind(cli: Cli) -> None:
    cli.run("send", "1")
    code, out, err = cli.run("demo", "--count", "300", "--no-spark", "--json")
    assert code == 0, err
    rows = json.loads(out)
    assert sum(row["published"] for row in rows) == sum(row["handled"] for row in rows) == 300
    assert "notifications: 300 published = 300 handled" in err
    assert [row["name"] for row in cli.rows("topics", "list")] == ["notifications.info"]


def test_sums_that_do_not_agree_are_an_error(cli: Cli) -> None:
    """Another program publishes to the demonstration's topic, and its listeners receive that too."""
    process = cli.start("demo", "--count", "50000", "--no-spark")
    with published_to(cli, "notifier-kafka-demo-"):
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 4, err
    assert err.splitlines()[-1] == "notifier-kafka: the counts do not agree"
    assert re.search(r"^\| a\.stranger's +\| +0 \| +[1-9]\d* \|$", out, re.MULTILINE), out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_demonstration_leaves_nothing_behind_when_it_is_ended(cli: Cli, number: signal.Signals) -> None:
    left = cli.home / "left"
    left.mkdir()
    cli.environment["TMPDIR"] = str(left)
    process = cli.start("demo", "--no-spark", "--count", "300000", url=None)
    until(lambda: list(left.glob("notifier-kafka-demo-*/log.db")))
    process.send_signal(number)
    assert process.wait(TIMEOUT_SECONDS) == 130
    assert list(left.iterdir()) == []


def test_the_demonstration_ends_when_its_job_does(cli: Cli) -> None:
    file = cli.home / "bad.conf"
    file.write_text("[spark_sinks]\nwindow = 1 minute\n")
    page = str(cli.home / "page.html")
    code, out, err = cli.run("--config-file", str(file), "demo", "--count", "10", "-o", page, url=None)
    assert (code, out) == (4, "")
    assert "aggregate ended with exit code 5: [spark_sinks] window: '1 minute' is not a time span" in err
    assert not pathlib.Path(page).exists()


def test_the_benchmark_measures_each_way_and_leaves_no_topic_behind(cli: Cli) -> None:
    cli.run("send", "1")
    code, out, err = cli.run("bench", "--count", "300", "--size", "1000", "--json")
    assert code == 0, err
    assert [(row["step"], row["notifications"]) for row in json.loads(out)] == [
        ("publish one by one", 300),
        ("publish many", 300),
        ("publish and wait", 300),
        ("listen one by one", 901),
        ("listen in batches", 901),
    ]
    assert all(row["per_second"] > 0 and row["cpu_us_each"] > 0 for row in json.loads(out))
    assert [row["call_p50_ms"] is None for row in json.loads(out)] == [False, True, False, True, True]
    assert [row["name"] for row in cli.rows("topics", "list")] == ["notifications.info"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kafka",), "two different logs"),
        (("-o", "/nowhere/page.html"), "/nowhere cannot be written to"),
    ],
)
def test_the_demonstration_refuses_at_once(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = cli.run("demo", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def _later(moment: str) -> str:
    """Return the time a millisecond later."""
    later = datetime.datetime.fromisoformat(moment) + datetime.timedelta(milliseconds=1)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _whole(path: pathlib.Path) -> list[str]:
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _catches(pid: int, number: signal.Signals) -> bool:
    """Tell whether a process has a handler for a signal."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (number - 1) & 1)
