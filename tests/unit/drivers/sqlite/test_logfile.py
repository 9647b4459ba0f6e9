"""The file of a log is deleted or moved away while it is in use."""

import contextlib
import pathlib
import signal
import sqlite3

import pytest

from notifier_kafka.errors import TransportUnavailable
from tests.unit.drivers.sqlite.sqlite_rig import (
    LONG,
    child,
    line,
    numbers,
    open_driver,
    poll_until,
    publish,
    read_all,
)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "log.db"


def remove(path: pathlib.Path, how: str) -> None:
    if how == "move":
        path.rename(f"{path}.old")
    elif how == "delete":
        path.unlink()
    else:
        for file in path.parent.glob("log.db*"):
            file.unlink()


def contents(path: object) -> list[int]:
    with contextlib.closing(sqlite3.connect(str(path))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with open_driver(path) as driver:
        return numbers(read_all(driver, "t"))


@pytest.mark.parametrize("how", ["move", "delete", "delete all"])
def test_what_is_published_next_is_in_a_new_file(path: pathlib.Path, how: str) -> None:
    with open_driver(path) as driver:
        publish(driver, "t", range(10))
        remove(path, how)
        publish(driver, "t", range(10, 20))
        assert contents(path) == list(range(10, 20))
        assert numbers(read_all(driver, "t")) == list(range(10, 20))
    assert contents(path) == list(range(10, 20))
    if how == "move":
        assert contents(f"{path}.old") == list(range(10))


def test_nothing_is_acknowledged_into_a_file_that_is_gone(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        publish(driver, "t", [1])
        with pytest.raises(TransportUnavailable, match=r"log\.db: .*deleted or moved"):  # noqa: SIM117
            with driver._log.writing():
                path.unlink()
        assert driver.admin().list_topics() == []
        publish(driver, "t", [2])
    assert contents(path) == [2]


@pytest.mark.parametrize("how", ["move", "delete all"])
def test_a_busy_process_goes_on_in_the_new_file(path: pathlib.Path, how: str) -> None:
    with child("write_endlessly", path) as writer:
        told = [int(line(writer)) for _ in range(200)]
        remove(path, how)
        with open_driver(path) as driver:
            poll_until(driver.subscribe(["t"], "g", "earliest"), lambda found: len(found) > 200)
        writer.send_signal(signal.SIGTERM)
        assert writer.stdout
        told += [int(text) for text in writer.stdout.read().split("\n")[:-1]]
        assert writer.wait(LONG)
    assert told == list(range(len(told)))
    found = contents(path)
    assert found == list(range(found[0], found[-1] + 1))
    assert found[-1] >= told[-1]
    if how == "move":
        assert contents(f"{path}.old") == list(range(found[0]))


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_listener_follows(path: pathlib.Path, start: str) -> None:
    with open_driver(path) as driver, open_driver(path) as other:
        subscription = driver.subscribe(["t"], "g", "earliest" if start == "earliest" else "latest")
        assert not subscription.poll(1, 0)
        publish(driver, "t", range(20))
        assert len(poll_until(subscription, lambda found: len(found) >= 20)) == 20
        path.rename(f"{path}.old")
        publish(other, "t", range(5))
        with pytest.raises(TransportUnavailable, match="moved"):
            subscription.poll(10, LONG)
        assert numbers(subscription.poll(10, LONG)) == list(range(5))
        subscription.commit({span.partition: span.stop for span in driver.spans(["t"])})
        assert sum(driver.admin().describe_group("g").lag.values()) == 0
