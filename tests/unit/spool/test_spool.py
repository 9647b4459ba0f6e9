"""The spool over SQLite as the bus, which is held as another process in a long write would hold it."""

import contextlib
import json
import logging
import os
import pathlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.errors import (
    ConfigurationError,
    DeliveryFailed,
    MessagingException,
    SpoolFull,
    SpoolTooOld,
)
from notifier_kafka.notification import Notification
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.spool import spool, spool_directory, spool_file, spool_files, spool_forwarder
from notifier_kafka.stats import losses
from notifier_kafka.stats.counters import Counters
from notifier_kafka.wire import codec
from tests.shared.log_lock import locked

PATIENCE = 30.0
SCRIPT = """
import sys
from oslo_config import cfg
from notifier_kafka.config import options
from notifier_kafka.publishing import notifier, transport
url, spool, first, count, end = sys.argv[1:]
conf = cfg.ConfigOpts()
options.register(conf)
for name, value in {"spool_dir": spool, "spool_after": 0.1, "exit_timeout": 0.5}.items():
    conf.set_override(name, value, group="notifications")
sender = notifier.Notifier(transport.get_notification_transport(conf, url), "p", driver="messagingv2")
for number in range(int(first), int(first) + int(count)):
    sender.info({}, "e", number)
print(sender.flush(30), flush=True)
if end == "hang":
    sys.stdin.readline()
"""


class Bus:
    """A log as the bus, a directory as the spool, and transports on them."""

    def __init__(self, home: Path) -> None:
        self.log, self.spool = home / "bus.db", home / "spool"
        self.url = f"sqlite:///{self.log}?busy_timeout=0.1&partitions=1"
        self.made: list[transport.NotificationTransport] = []

    def transport(
        self, on_failure: Callable[..., object] | None = None, **settings: Any
    ) -> transport.NotificationTransport:
        conf = cfg.ConfigOpts()
        options.register(conf)
        wanted = {
            "spool_dir": str(self.spool),
            "spool_after": 0.1,
            "exit_timeout": 0.2,
            "block_timeout": PATIENCE,
        } | settings
        for name, value in wanted.items():
            conf.set_override(name, value, group=options.NOTIFICATIONS)
        self.made.append(transport.get_notification_transport(conf, self.url, on_failure=on_failure))
        return self.made[-1]

    def sender(self, **settings: Any) -> notifier.Notifier:
        """Make a notifier, and the log with its first record."""
        made = notifier.Notifier(self.transport(**settings), "p", driver="messagingv2")
        made.prepare(wait=True).info({}, "e", "first")
        return made

    def sender_in_spool(self) -> notifier.Notifier:
        """Make a notifier, while the log is held, that has one notification in the spool."""
        made = notifier.Notifier(self.transport(), "p", driver="messagingv2")
        made.info({}, "e", "mine")
        assert made.flush(PATIENCE) == 0
        return made

    def payloads(self) -> list[Any]:
        driver = self.made[-1].driver
        spans = driver.spans(["notifications.info"])
        return [codec.decode(found.record).payload for span in spans for found in driver.read(span)]

    def process(self, first: int, count: int, end: str) -> "subprocess.Popen[str]":
        """Start one that publishes, and wait until it has all on the bus or on the disk."""
        command = [sys.executable, "-c", SCRIPT, self.url, str(self.spool), str(first), str(count), end]
        made = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert made.stdout is not None
        assert made.stdout.readline() == "0\n"
        return made

    def killed_process(self, first: int, count: int) -> "subprocess.Popen[str]":
        made = self.process(first, count, "hang")
        made.kill()
        made.communicate()
        return made

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        program = [sys.executable, "-m", "notifier_kafka.cli.main", "--transport-url", self.url]
        return subprocess.run(
            [*program, *arguments, "--directory", str(self.spool)],
            check=False,
            capture_output=True,
            text=True,
        )

    def status(self) -> list[dict[str, Any]]:
        """Return what the command says."""
        done = self.command("spool", "status", "--json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows

    def files(self) -> list[Path]:
        return sorted(self.spool.glob("*.db"))


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    made = Bus(tmp_path)
    yield made
    for each in made.made:
        each.cleanup()


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def sent(sender: notifier.Notifier) -> bool:
    stats = sender.stats()
    return not stats.pending and not stats.waiting


def test_what_the_bus_does_not_take_comes_in_order_and_leaves_no_file(bus: Bus) -> None:
    sender = bus.sender()
    with locked(bus.log):
        for number in range(3_000):
            sender.info({}, "e", number)
            if number in (500, 1_000):
                # On the disk, though nothing is on the bus.
                assert sender.flush(PATIENCE) == 0
        assert sender.flush(PATIENCE) == 0
        assert sender.stats().waiting == 3_000
        assert [file.stat().st_mode & 0o777 for file in bus.files()] == [0o600]
        assert bus.spool.stat().st_mode & 0o777 == 0o700
    for number in range(3_000, 3_100):
        sender.info({}, "e", number)
    until(lambda: sent(sender), "the spool to be sent")
    assert bus.payloads() == ["first", *range(3_100)]
    assert sender.stats().lost == {}
    until(lambda: not list(bus.spool.iterdir()), "the file to go")


def test_a_full_outbox_goes_to_the_spool_at_once(bus: Bus) -> None:
    sender = bus.sender(outbox_records=100, spool_after=1_000.0)
    with locked(bus.log):
        for number in range(1_000):
            sender.info({}, "e", number)
        # The outbox has a hundred, and nobody said that the bus is away.
        assert sender.flush(0.0) >= 100
        until(lambda: sender.stats().waiting == 900, "the rest to be on the disk")
    until(lambda: sent(sender), "the spool to be sent")
    assert bus.payloads() == ["first", *range(1_000)]


def test_who_waits_for_a_receipt_is_never_put_off_with_the_spool(bus: Bus) -> None:
    sender = bus.sender()
    with locked(bus.log):
        sender.info({}, "e", "spooled")
        assert sender.flush(PATIENCE) == 0
        with pytest.raises(DeliveryFailed):
            sender.prepare(wait=True, retry=0).info({}, "e", "refused")
    until(lambda: sent(sender), "the spool to be sent")
    assert bus.payloads() == ["first", "spooled"]


def test_a_record_whose_tries_are_over_goes_to_the_spool(bus: Bus) -> None:
    sender = bus.sender(spool_after=1_000.0)
    with locked(bus.log):
        sender.prepare(retry=0).info({}, "e", "tried once")
        assert sender.flush(PATIENCE) == 0
        assert sender.stats().waiting == 1
    until(lambda: sent(sender), "the spool to be sent")
    assert bus.payloads() == ["first", "tried once"]


def test_what_is_refused_for_good_is_told_and_not_spooled(bus: Bus, caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[object, MessagingException]] = []

    def on_failure(notification: Any, error: MessagingException) -> None:
        told.append((notification.payload, error))
        raise ZeroDivisionError("the user's own")

    made = bus.transport(on_failure)
    sender = notifier.Notifier(made, "p", driver="messagingv2", topics=["no topic is named so\n"])
    sender.info({}, "e", 1)
    assert sender.flush(PATIENCE) == 0
    until(lambda: told, "the callback")
    assert [payload for payload, _ in told] == [1]
    assert not told[0][1].retriable
    assert sender.stats()[:5] == (1, 0, 0, 0, 0)
    assert sum(sender.stats().lost.values()) == 1
    until(lambda: "on_failure" in caplog.text, "the log of the callback's own error")
    assert bus.files() == []


@contextlib.contextmanager
def newer(log: Path) -> Iterator[None]:
    """Have a log be of a version that is not known here, as after a step back to an older package."""
    with contextlib.closing(sqlite3.connect(log)) as connection:
        (known,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("PRAGMA user_version = 99")
        yield
        connection.execute(f"PRAGMA user_version = {known}")


def test_what_a_log_that_cannot_be_used_does_not_take_stays_in_the_spool(bus: Bus) -> None:
    bus.sender()
    bus.made.pop().cleanup()
    with newer(bus.log):
        sender = notifier.Notifier(bus.transport(), "p", driver="messagingv2")
        for number in range(100):
            sender.info({}, "e", number)
        assert sender.flush(PATIENCE) == 0
        until(lambda: sender.stats().waiting == 100, "all to be on the disk")
        bus.made.pop().cleanup()
        sender = notifier.Notifier(bus.transport(), "p", driver="messagingv2")
        sender.info({}, "e", 100)
        assert sender.flush(PATIENCE) == 0
        # For as long as sending takes to fail, twice.
        time.sleep(2 * spool_forwarder.PAUSE)
        assert (sender.stats().waiting, sender.stats().lost) == (101, {})
    until(lambda: sent(sender), "the spool to be sent")
    assert bus.payloads() == ["first", *range(101)]


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_the_next_process_sends_first_what_the_last_one_left(bus: Bus, end: str) -> None:
    bus.sender()
    bus.made.pop().cleanup()
    with locked(bus.log):
        process = bus.process(0, 500, "hang" if end == "kill" else "")
        if end == "kill":
            process.kill()
        _, said = process.communicate()
        assert ("500 notifications stay in the spool" in said) == (end == "exit")
        assert len(bus.files()) == 1
        sender = notifier.Notifier(bus.transport(), "p", driver="messagingv2")
        for number in range(500, 600):
            sender.info({}, "e", number)
    until(lambda: sent(sender), "the spool to be sent")
    assert bus.payloads() == ["first", *range(600)]
    until(lambda: not list(bus.spool.iterdir()), "the files to go")


@pytest.mark.parametrize("foreign", [".owner", ".db", ".db-wal"])
def test_what_another_user_left_is_not_sent_with_our_login(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, foreign: str
) -> None:
    """Whoever may write into the directory would publish whatever it likes as this service."""
    monkeypatch.setattr(spool, "ADOPTION", 0.01)
    bus.sender()
    bus.made.pop().cleanup()
    with locked(bus.log):
        bus.killed_process(0, 100)
    (left,) = bus.spool.glob(f"*{foreign}")
    if os.geteuid() == 0:
        os.chown(left, 65_534, 65_534)
    else:
        # Who may give no file away becomes another user.
        monkeypatch.setattr(os, "geteuid", lambda: 65_534)
    sender = notifier.Notifier(bus.transport(), "p", driver="messagingv2")
    with locked(bus.log):
        sender.info({}, "e", 100)
        until(lambda: len(list(bus.spool.glob("*.db"))) == 2, "a file of its own")
    until(lambda: sent(sender), "its own to be sent")
    assert bus.payloads() == ["first", 100]
    assert left.exists()
    assert spool_directory.adopt(bus.spool) == ([], set())
    assert caplog.text.count("Files of other users in the spool") == 1


def test_a_link_in_the_place_of_an_owner_file_leads_nowhere(bus: Bus, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    before = victim.stat().st_mtime_ns
    spool_directory.prepare(bus.spool)
    (bus.spool / "1-1.owner").symlink_to(victim)
    assert spool_directory.adopt(bus.spool) == ([], set())
    assert victim.stat().st_mtime_ns == before


def test_the_probe_of_the_directory_writes_through_no_link(bus: Bus, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    bus.spool.mkdir()
    (bus.spool / f"probe-{os.getpid()}").symlink_to(victim)
    spool_directory.prepare(bus.spool)
    assert victim.read_text() == "precious"


def test_a_second_life_waits_for_who_sends_what_the_first_one_left(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "ADOPTION", 0.1)
    bus.sender()
    bus.made.pop().cleanup()
    with locked(bus.log):
        bus.killed_process(0, 100)
    # Another process of the same directory was quicker.
    (taken,), _ = spool_directory.adopt(bus.spool)
    sender = notifier.Notifier(bus.transport(), "p", driver="messagingv2")
    for number in range(100, 200):
        sender.info({}, "e", number)
    assert sender.flush(PATIENCE) == 0
    assert sender.stats().waiting == 100, "they go to the bus before those of the first life"
    assert bus.payloads() == ["first"]
    taken.release()
    until(lambda: len(bus.payloads()) == 201, "the spool to be sent")
    assert bus.payloads() == ["first", *range(200)]


def test_what_another_process_left_is_sent_whatever_this_one_had_under_way(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the clients of both had is numbered in the same way by each."""
    monkeypatch.setattr(spool, "ADOPTION", 0.1)
    sender = bus.sender()
    with locked(bus.log):
        process = bus.process(10, 10, "hang")
        for number in range(10):
            sender.info({}, "e", number)
        assert sender.flush(PATIENCE) == 0
        process.kill()
        process.communicate()
        until(lambda: sender.stats().waiting == 20, "the other's file to be taken over")
    until(lambda: sent(sender), "the spool to be sent")
    assert sorted(bus.payloads()[1:]) == list(range(20))
    assert sender.stats().lost == {}


def test_a_process_that_lives_keeps_its_file(bus: Bus) -> None:
    bus.sender()
    with locked(bus.log):
        process = bus.process(0, 100, "hang")
        other = bus.sender_in_spool()
        assert other.stats().waiting == 1
        rows = bus.status()
    assert [(row["pid"], row["owner"], row["records"]) for row in rows] == [
        (process.pid, "alive", 100),
        (os.getpid(), "alive", 1),
    ]
    process.communicate("")
    until(lambda: sent(other), "the spool to be sent")
    # It may have had no time for its own at its end.
    assert bus.command("spool", "flush").returncode == 0
    assert sorted(map(str, bus.payloads())) == sorted(["first", "mine", *map(str, range(100))])


def test_the_commands_show_and_send_what_is_left(bus: Bus) -> None:
    bus.sender()
    with locked(bus.log):
        process = bus.killed_process(0, 50)
        (row,) = bus.status()
        assert (row["pid"], row["owner"], row["records"]) == (process.pid, "gone", 50)
        assert row["oldest"]
    tried = bus.command("spool", "flush", "--timeout", "0", "--json")
    assert (tried.returncode, json.loads(tried.stdout)["sent"]) == (4, 0), tried.stderr
    assert "50 records remain" in tried.stderr
    done = bus.command("spool", "flush", "-f", "value", "-c", "sent", "-c", "remain", "-c", "given_up")
    assert (done.returncode, done.stdout) == (0, "50\n0\n0\n")
    assert bus.payloads() == ["first", *range(50)]
    assert bus.status() == []


@pytest.mark.long
def test_a_spool_that_is_too_large_drops_its_oldest_and_tells_of_each(bus: Bus) -> None:
    told: list[Any] = []
    sender = bus.sender(
        on_failure=lambda one, why: told.append((one.payload[0], type(why))), spool_bytes=1024 * 1024
    )
    with locked(bus.log):
        for number in range(300):
            sender.info({}, "e", [number, "x" * 20_000])
            # The first is in the outbox as well, and there alone when its copy has to go.
            sender.flush(PATIENCE if number <= 40 else 0.0)
            until(lambda: sender.flush(0.0) <= 1, "the rest to be on the disk")
    until(lambda: sent(sender), "the spool to be sent")
    numbers = [payload[0] for payload in bus.payloads()[1:]]
    lost = sender.stats().lost["SpoolFull"]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 299
    assert len(told) == lost > 100
    assert {why for _, why in told} == {SpoolFull}
    # Each once: it arrived or it was told.
    assert sorted([*numbers, *(number for number, _ in told)]) == list(range(300))


def test_what_the_client_still_has_takes_no_room_twice(bus: Bus) -> None:
    """Its copies are the oldest, and go; made anew they would push out what is in the spool alone."""
    sender = bus.sender(spool_bytes=1024 * 1024)
    with locked(bus.log):
        for number in range(250):
            sender.info({}, "e", [number, "x" * 10_000])
        # More of them than there is room for: the client alone has the first ones.
        until(lambda: sender.stats().spooled >= 250, "what the client has to be copied")
        for number in range(250, 400):
            sender.info({}, "e", [number, "x" * 1_000])
        # For many beats of its thread.
        assert 0 < sender.flush(1.0) <= 250
        assert sender.stats().spooled == 400
    until(lambda: sent(sender), "the spool to be sent")
    assert [payload[0] for payload in bus.payloads()[1:]] == list(range(400))
    assert sender.stats().lost == {}


def test_what_is_too_old_is_dropped_and_counted(bus: Bus) -> None:
    told: list[Any] = []
    sender = bus.sender(
        on_failure=lambda one, why: told.append((one.payload, type(why))),
        spool_age=0.0,
        outbox_records=10,
        spool_after=1_000.0,
    )
    with locked(bus.log):
        for number in range(30):
            sender.info({}, "e", number)
        until(lambda: sender.stats().waiting == 20, "the rest to be on the disk")
    until(lambda: sent(sender), "the spool to be emptied")
    assert bus.payloads() == ["first", *range(10)]
    assert sender.stats().lost == {"SpoolTooOld": 20}
    assert told == [(number, SpoolTooOld) for number in range(10, 30)]


def _record(number: int) -> Record:
    sent = Notification("m", "p", "e", "INFO", [number, "x" * 20_000], "2026-01-01 00:00:00", {})
    value, headers = codec.encode(sent, "flat", None)
    return Record("t", value, None, headers)


def test_a_service_that_dies_again_and_again_fills_no_disk(tmp_path: Path) -> None:
    """Of many files of dead processes the oldest are given up, but for the one that may be under way."""
    limits, counters = Limits(), Counters(logging.getLogger("test"))
    opener = spool_file.opener(cfg.ConfigOpts(), 0)
    given: list[Any] = []
    told = losses.Losses(counters, lambda one, _: given.append(codec.decode(one).payload))

    def make(owned: spool_directory.Owned) -> spool_file.SpoolFile:
        return spool_file.SpoolFile(owned, opener(owned.path), limits, told.lose)

    for _ in range(6):
        file = make(spool_directory.create(tmp_path))
        for number in range(20):
            file.keep(_record(number))
        assert file.unwritten(PATIENCE) == 0
        assert file.leave() == 20
    made = spool_files.Files(tmp_path, 2_000_000, make, told)
    made.start()
    made.give_up_surplus(lambda: True)
    assert given == []
    made.give_up_surplus(lambda: False)
    kept = len(made.files)
    assert 1 < kept < 6
    assert counters.counts() == {"lost.SpoolFull": 20 * (6 - kept)}
    assert [payload for payload, _ in given] == [*range(20)] * (6 - kept)
    names = sorted(path.name for path in tmp_path.glob("*.db"))
    assert [file.path.name for file in made.files] == names
    assert sum(file.leave() for file in made.files) == 20 * kept


def test_a_spool_that_did_not_start_starts_with_the_next_record(bus: Bus) -> None:
    """As when the first record comes from so deep in the program that Python's stack ends in here."""
    counted, limits = losses.Losses(Counters(logging.getLogger("test"))), Limits()
    opener = spool_file.opener(cfg.ConfigOpts(), 0)
    ends: list[RecursionError] = []

    def make(owned: spool_directory.Owned) -> spool_file.SpoolFile:
        if ends:
            raise ends.pop()
        return spool_file.SpoolFile(owned, opener(owned.path), limits, counted.lose)

    bus.spool.mkdir()
    left = make(spool_directory.create(bus.spool))
    left.keep(_record(0))
    assert left.unwritten(PATIENCE) == 0
    assert left.leave() == 1
    driver = bus.transport().driver
    terms = spool.Terms(bus.spool, 0.1, 60.0, 2_000_000, limits)
    made = spool.Spool(terms, make, lambda: driver.publisher(counted.lose, limits), counted)
    ends.append(RecursionError("maximum recursion depth exceeded"))
    with pytest.raises(DeliveryFailed, match="the spool did not start: maximum recursion"):
        made.keep(_record(1))
    assert made.keep(_record(1))
    assert made.flush(PATIENCE) == 0
    assert made.close(0.0) == 0


def test_a_file_that_cannot_be_read_is_set_aside_and_the_rest_goes_on(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    bus.spool.mkdir()
    (bus.spool / "00000000000000000001-1.db").write_bytes(b"no database" * 1_000)
    (bus.spool / "00000000000000000001-1.owner").touch()
    sender = bus.sender()
    for number in range(10):
        sender.info({}, "e", number)
    until(lambda: len(bus.payloads()) == 11, "the spool to go on")
    assert "set aside" in caplog.text
    assert [file.name for file in bus.spool.glob("*.unusable")] == ["00000000000000000001-1.unusable"]


def test_flushing_sets_a_file_aside_that_cannot_be_read(bus: Bus) -> None:
    bus.sender()
    with locked(bus.log):
        bus.killed_process(0, 50)
    (bus.spool / "00000000000000000001-1.db").write_bytes(b"no database" * 1_000)
    (bus.spool / "00000000000000000001-1.owner").touch()
    done = bus.command("spool", "flush", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["sent"], found["remain"]) == (4, 50, 1), done.stderr
    assert "00000000000000000001-1.db" in done.stderr
    assert bus.payloads() == ["first", *range(50)]
    assert bus.command("spool", "flush").returncode == 0
    assert [file.name for file in bus.spool.glob("*.unusable")] == ["00000000000000000001-1.unusable"]


def test_a_directory_that_cannot_be_used_is_told_when_the_notifier_is_made(bus: Bus) -> None:
    bus.spool.write_text("a file")
    with pytest.raises(ConfigurationError, match=r"spool_dir = .*name another directory"):
        notifier.Notifier(bus.transport(), "p", driver="messagingv2")
    with pytest.raises(ConfigurationError, match="set spool_dir"):
        notifier.Notifier(bus.transport(spool_dir=None, on_full="spool"), "p", driver="messagingv2")


def test_a_directory_that_goes_away_costs_counted_drops_and_no_error(bus: Bus) -> None:
    told: list[object] = []

    def tell(one: Notification, _error: MessagingException) -> None:
        # It may wait for another thread that publishes.
        with futures.ThreadPoolExecutor(1) as pool:
            pool.submit(sender.flush, 0.0).result(PATIENCE)
        told.append(one.payload)

    sender = bus.sender(outbox_records=10, spool_after=1_000.0, on_failure=tell)
    bus.spool.rmdir()
    bus.spool.write_text("in the way")
    with locked(bus.log):
        for number in range(30):
            sender.info({}, "e", number)
    until(lambda: len(bus.payloads()) == 11, "the outbox")
    assert told == list(range(10, 30))
    assert sender.stats().lost == {"TransportUnavailable": 20}


# Newer Pythons warn of forking with threads, which is what is tested.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_a_file_of_its_own_and_sends_none_of_its_parents(bus: Bus) -> None:
    # Not SQLite, whose own rules about forks while a log is in use are tested elsewhere.
    bus.url = "kafka://127.0.0.1:1/?client=kafka-python"
    sender = notifier.Notifier(bus.transport(), "p", driver="messagingv2")
    for number in range(10):
        sender.info({}, "e", number)
    assert sender.flush(PATIENCE) == 0
    (ready, told), (go, gone) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        for number in range(5):
            sender.info({}, "e", number)
        left = sender.flush(PATIENCE)
        os.write(told, b"x")
        os.read(go, 1)
        os._exit(left)
    assert os.read(ready, 1) == b"x"
    waiting = sender.stats().waiting
    bus.made.pop().cleanup()
    seen = spool_directory.listing(bus.spool)
    os.write(gone, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for end in (ready, told, go, gone):
        os.close(end)
    assert waiting == 10
    # The child has inherited the parent's lock and must not keep it.
    assert [(each.pid, each.alive) for each in seen] == [(os.getpid(), False), (child, True)]
    opener = spool_file.opener(cfg.ConfigOpts(), 0)
    assert [spool_file.waiting(opener(file)).records for file in bus.files()] == [10, 5]


@pytest.mark.parametrize(
    "record",
    [Record("a.info", None, b"k"), Record("b", b"", None, (("origin", b"mine"), ("x", b"")))],
)
def test_a_record_comes_out_of_the_spool_as_it_went_in(record: Record) -> None:
    assert spool_file.unwrap(spool_file.wrap(spool_file.FRONT, 17, record)) == (17, record)


def test_an_owner_file_that_went_while_it_was_opened_is_nobodys(tmp_path: pathlib.Path) -> None:
    held = spool_directory.create(tmp_path)
    assert spool_directory.adopt(tmp_path) == ([], set())
    held.release()
    (adopted,), _ = spool_directory.adopt(tmp_path)
    assert spool_directory.adopt(tmp_path) == ([], {adopted.path})
    adopted.remove()
    assert list(tmp_path.iterdir()) == []
