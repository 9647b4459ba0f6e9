"""Members of groups that come, go, die, sleep and fork."""

import os
import pathlib
import signal
import sqlite3
import threading
import time
from typing import Any

import pytest

from notifier_kafka.contract.driver import Partition, Span
from notifier_kafka.errors import CommitRefused, LogUnusable
from notifier_kafka_drivers.sqlite import blocks
from notifier_kafka_drivers.sqlite.driver import SqliteDriver
from notifier_kafka_drivers.sqlite.subscription import LogSubscription
from tests.unit.drivers.sqlite.sqlite_rig import (
    LONG,
    await_true,
    child,
    ends,
    line,
    make_driver,
    numbers,
    open_driver,
    poll_until,
    publish,
    read_all,
    suspend,
)

SHORT = "session_timeout=1"


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "log.db"


def spread(driver: SqliteDriver, count: int, partitions: int = 4) -> None:
    """Publish numbers over all partitions of topic t."""
    driver.admin().create_topic("t", partitions)
    for number in range(count):
        publish(driver, "t", [number], b"%d" % number)


def owned(driver: SqliteDriver, group: str) -> list[int]:
    """How many partitions each member of a group holds."""
    return sorted(len(own) for own in driver.admin().describe_group(group).members.values())


def balance(driver: SqliteDriver, group: str, *members: LogSubscription) -> None:
    count = len(members)
    fair = sorted((4 + i) // count for i in range(count))
    deadline = time.monotonic() + LONG
    while owned(driver, group) != fair:
        assert time.monotonic() < deadline
        for member in members:
            assert not member.poll(1, 0.02)


def test_a_member_that_is_killed_is_replaced(path: pathlib.Path) -> None:
    with open_driver(path, SHORT) as driver:
        spread(driver, 100)
        with child("own", path, "g", SHORT) as owner:
            assert int(line(owner)) > 0
            subscription = driver.subscribe(["t"], "g", "earliest")
            owner.send_signal(signal.SIGKILL)
            found = poll_until(subscription, lambda found: len(found) >= 100)
        assert sorted(numbers(found)) == list(range(100))


def test_a_member_that_is_stopped_is_replaced_and_then_refused(path: pathlib.Path) -> None:
    with open_driver(path, SHORT) as driver:
        spread(driver, 40)
        with child("listen", path, "g", SHORT) as listener:
            seen: set[int] = set()
            while len(seen) < 40:
                seen |= {int(number) for number in line(listener).split()}
            suspend(listener, path)
            subscription = driver.subscribe(["t"], "g", "earliest")
            publish(driver, "t", [1000], b"0")
            found = poll_until(subscription, lambda found: len(found) >= 1)
            assert numbers(found) == [1000], "positions that were committed hold"
            subscription.commit(ends(found))
            listener.send_signal(signal.SIGCONT)
            # It comes back as a member with its fair share.
            await_true(lambda: not subscription.poll(1, 0.05) and owned(driver, "g") == [2, 2])


def test_long_work_keeps_its_partitions(path: pathlib.Path) -> None:
    # Long enough for a busy machine to renew it in time.
    with open_driver(path, "session_timeout=1.5") as driver:
        spread(driver, 10)
        first = driver.subscribe(["t"], "g", "earliest")
        found = poll_until(first, lambda found: len(found) == 10)
        second = driver.subscribe(["t"], "g", "earliest")
        # For twice that the owner polls nothing.
        until = time.monotonic() + 3.0
        while time.monotonic() < until:
            assert not second.poll(10, 0.1)
        first.commit(ends(found))
        assert owned(driver, "g") == [0, 4]


def lapse(driver: SqliteDriver, member: LogSubscription) -> None:
    """Let a member's lease run out, as when its process was stopped for long."""
    member._stop_renewing.set()
    with driver._log.writing() as connection:
        connection.execute("UPDATE members SET expires = 0 WHERE id = ?", (member._membership.id,))


def test_a_lapsed_lease_matters_only_when_somebody_took_the_claim(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        spread(driver, 10)
        first = driver.subscribe(["t"], "g", "earliest")
        found = poll_until(first, lambda found: len(found) == 10)
        lapse(driver, first)
        first.commit(ends(found[:1]))
        second = driver.subscribe(["t"], "g", "earliest")
        poll_until(second, lambda found: len(found) == 9)
        with pytest.raises(CommitRefused) as caught:
            first.commit(ends(found))
        assert caught.value.partitions == set(ends(found))
        assert (
            sum(driver.admin().describe_group("g").positions.values()) == ends(found[:1])[found[0].partition]
        ), "a refused commit changes nothing"


def test_leases_from_before_a_reboot_do_not_count(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        spread(driver, 10)
        first = driver.subscribe(["t"], "g", "earliest")
        poll_until(first, lambda found: len(found) == 10)
        first._stop_renewing.set()
        with driver._log.writing() as connection:
            connection.execute("UPDATE members SET expires = ?", (time.monotonic() + 1e6,))
        second = driver.subscribe(["t"], "g", "earliest")
        poll_until(second, lambda found: len(found) == 10)


def test_members_share_evenly_as_they_come_and_go(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        driver.admin().create_topic("t", 4)
        members = [driver.subscribe(["t"], "g", "earliest") for _ in range(3)]
        for count in (1, 2, 3):
            balance(driver, "g", *members[:count])
        members[0].close()
        balance(driver, "g", *members[1:])
        members[1].close()
        balance(driver, "g", members[2])


def test_a_rebalance_loses_and_repeats_nothing_that_was_committed(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        driver.admin().create_topic("t", 4)
        members = [driver.subscribe(["t"], "g", "earliest") for _ in range(3)]
        found: list[int] = []
        for round_ in range(30):
            for number in range(10):
                publish(driver, "t", [round_ * 10 + number], b"%d" % number)
            for member in members[: 1 + round_ % 3]:
                some = member.poll(7, 0.02)
                member.commit(ends(some))
                found += numbers(some)
        while len(found) < 300:
            for member in members:
                some = member.poll(100, 0.02)
                member.commit(ends(some))
                found += numbers(some)
        assert sorted(found) == list(range(300))


def test_latest_is_fixed_when_the_group_begins(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        publish(driver, "t", range(10))
        first = driver.subscribe(["t", "later"], "g", "latest")
        assert not first.poll(10, 0)
        first.close()
        publish(driver, "t", range(10, 20))
        publish(driver, "later", range(20, 30))
        second = driver.subscribe(["t", "later"], "g", "latest")
        found = poll_until(second, lambda found: len(found) >= 20)
        assert sorted(numbers(found)) == list(range(10, 30))


def test_a_group_may_begin_at_a_moment(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", [0, 1])
        before = read_all(driver, "t")[-1].timestamp
        await_true(lambda: time.time() > before)
        moment = time.time()
        publish(driver, "t", [2, 3])
        subscription = driver.subscribe(["t"], "g", moment)
        assert numbers(subscription.poll(10, LONG)) == [2, 3]


def test_a_topic_that_appears_in_another_process_wakes_the_waiting(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        subscription = driver.subscribe(["t"], "g", "earliest")
        assert not subscription.poll(1, 0)
        with child("write_endlessly", path):
            assert numbers(subscription.poll(1, LONG)) == [0]


def test_positions_stay_when_members_leave(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", range(10))
        for start in (0, 5):
            subscription = driver.subscribe(["t"], "g", "earliest")
            found = subscription.poll(5, LONG)
            assert numbers(found) == list(range(start, start + 5))
            subscription.commit(ends(found))
            subscription.close()
        description = driver.admin().describe_group("g")
        assert description.members == {}
        assert description.lag == {Partition("t", 0): 0}


def test_a_commit_behind_changes_nothing(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", range(10))
        subscription = driver.subscribe(["t"], "g", "earliest")
        subscription.poll(10, LONG)
        subscription.commit({Partition("t", 0): 7})
        subscription.commit({Partition("t", 0): 3})
        assert driver.admin().describe_group("g").positions == {Partition("t", 0): 7}


@pytest.mark.parametrize("offset", [-5, 1 << 39, 1 << 70])
def test_positions_beyond_the_bounds_do_no_harm(path: pathlib.Path, offset: int) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", range(10))
        position = {Partition("t", 0): offset}
        subscription = driver.subscribe(["t"], "g", "earliest")
        subscription.poll(10, LONG)
        subscription.seek(position)
        assert len(subscription.poll(10, 0.01)) == (10 if offset < 0 else 0)
        subscription.commit(position)
        subscription.close()
        driver.admin().reset_group("g", position)
        assert driver.admin().describe_group("g").lag == {Partition("t", 0): 10 if offset < 0 else 0}
        assert len(list(driver.read(Span(Partition("t", 0), -3, abs(offset))))) == min(10, abs(offset))


def test_a_private_group_ends_with_its_member(path: pathlib.Path) -> None:
    def private_groups(driver: SqliteDriver) -> int:
        with driver._log.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM groups").fetchone()[0])

    with open_driver(path) as driver:
        publish(driver, "t", range(10))
        left, died = (driver.subscribe(["t"], None, "earliest") for _ in range(2))
        for subscription in (left, died):
            assert len(subscription.poll(10, LONG)) == 10
        assert private_groups(driver) == 2
        assert driver.admin().list_groups() == []
        left.close()
        assert private_groups(driver) == 1
        lapse(driver, died)
        last = driver.subscribe(["t"], None, "earliest")
        assert len(last.poll(10, LONG)) == 10
        assert private_groups(driver) == 1
        # One that was only thought dead goes on where it was.
        died.seek({Partition("t", number): 0 for number in range(4)})
        publish(driver, "t", [10])
        assert 10 in numbers(poll_until(died, lambda found: 10 in numbers(found)))


def test_a_deleted_topic_is_refused_and_read_again_when_it_comes_back(path: pathlib.Path) -> None:
    with open_driver(path, "partitions=1") as driver:
        publish(driver, "t", range(10))
        publish(driver, "u", range(10))
        subscription = driver.subscribe(["t", "u"], "g", "earliest")
        found = poll_until(subscription, lambda found: len(found) == 20)
        driver.admin().delete_topic("t")
        with pytest.raises(CommitRefused) as caught:
            subscription.commit(ends(found))
        assert caught.value.partitions == {("t", 0)}
        subscription.commit({Partition("u", 0): 10})
        assert not subscription.poll(10, 0.05)
        publish(driver, "t", [100])
        assert numbers(subscription.poll(10, LONG)) == [100]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_a_member_of_its_own(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        spread(driver, 10)
        subscription = driver.subscribe(["t"], "g", "earliest")
        found = poll_until(subscription, lambda found: len(found) == 10)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                assert not subscription.poll(10, 0.3)
                assert owned(driver, "g") == [0, 4]
                subscription.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        subscription.commit(ends(found))
        assert owned(driver, "g") == [4]


def test_closing_from_another_thread_ends_a_poll_and_leaves_the_group(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        driver.admin().create_topic("t", 4)
        first = driver.subscribe(["t"], "g", "earliest")
        thread = threading.Thread(target=lambda: first.poll(1, 3600))
        thread.start()
        await_true(lambda: owned(driver, "g") == [4])
        first.close()
        thread.join(LONG)
        assert not thread.is_alive()
        assert owned(driver, "g") == []
        with pytest.raises(LogUnusable, match="closed"):
            first.poll(1, 0)


def test_a_signal_handler_may_close_what_its_thread_polls(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        subscription = driver.subscribe(["t"], "g", "earliest")
        previous = signal.signal(signal.SIGALRM, lambda *_: subscription.close())
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            assert not subscription.poll(1, LONG)
        finally:
            signal.signal(signal.SIGALRM, previous)


def test_a_dropped_subscription_does_not_live_on(path: pathlib.Path) -> None:
    driver = make_driver(path, "session_timeout=0.3")
    driver.admin().create_topic("t", 4)
    assert not driver.subscribe(["t"], "g", "earliest").poll(1, 0)
    await_true(lambda: owned(driver, "g") == [])
    driver.close()


def test_reading_goes_fairly_over_partitions(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        spread(driver, 200)
        subscription = driver.subscribe(["t"], "g", "earliest")
        firsts = {subscription.poll(5, LONG)[0].partition for _ in range(8)}
        assert len(firsts) == 4


def test_an_error_in_a_later_partition_skips_nothing_of_an_earlier_one(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(reader: blocks.Reader, *_: object) -> blocks.Frame:
        monkeypatch.undo()
        raise sqlite3.OperationalError("disk I/O error")

    def frame_then_fail(reader: blocks.Reader, *arguments: Any) -> blocks.Frame | None:
        found: blocks.Frame | None = frame(reader, *arguments)
        if found:
            monkeypatch.setattr(blocks.Reader, "frame", fail_once)
        return found

    frame = blocks.Reader.frame
    with open_driver(path) as driver:
        spread(driver, 40)
        subscription = driver.subscribe(["t"], "g", "earliest")
        monkeypatch.setattr(blocks.Reader, "frame", frame_then_fail)
        with pytest.raises(LogUnusable):
            subscription.poll(100, LONG)
        publish(driver, "t", [1000])
        found = poll_until(subscription, lambda found: 1000 in numbers(found))
        assert sorted(numbers(found)) == [*range(40), 1000]
