"""What is at the path: nothing, a log of ours, or something that must not be touched."""

import contextlib
import errno
import os
import pathlib
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile

import pytest
from oslo_config import cfg

from notifier_kafka.errors import InvalidTransportURL, LogUnusable, MessagingException, TransportUnavailable
from notifier_kafka.publishing import transport
from tests.shared.checkout import ROOT
from tests.unit.drivers.sqlite.sqlite_rig import make_driver, numbers, open_driver, publish, read_all


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=["publish", "spans", "poll", "admin"])
def use(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def try_to(use: str, path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        if use == "publish":
            publish(driver, "t", [1])
        elif use == "spans":
            driver.spans(["t"])
        elif use == "poll":
            driver.subscribe(["t"], "g", "earliest").poll(1, 1)
        else:
            driver.admin().list_topics()


def refusal(use: str, path: pathlib.Path) -> str:
    with pytest.raises(MessagingException) as caught:
        try_to(use, path)
    cause = caught.value if use != "publish" else caught.value.__cause__
    assert isinstance(cause, LogUnusable)
    assert not caught.value.retriable
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_are_the_owners_alone(tmp_path: pathlib.Path) -> None:
    previous = os.umask(0)
    try:
        directory = tmp_path / "new" / "newer"
        with open_driver(directory / "log.db") as driver:
            publish(driver, "t", [1])
            files = sorted(directory.iterdir())
            assert [file.name for file in files] == ["log.db", "log.db-lock", "log.db-shm", "log.db-wal"]
            assert {mode(file) for file in files} == {0o600}
            assert [mode(each) for each in (directory, directory.parent)] == [0o700, 0o700]
    finally:
        os.umask(previous)


@pytest.mark.parametrize(("query", "level"), [("", 2), ("synchronous=full", 2), ("synchronous=normal", 1)])
def test_every_connection_is_fully_synchronous_unless_told_otherwise(
    tmp_path: pathlib.Path, query: str, level: int
) -> None:
    with open_driver(tmp_path / "log.db", query) as driver:
        publish(driver, "t", [1])
        # The first was the publisher's; the second is made because the first is lent.
        with driver._log.reading() as first, driver._log.writing() as second:
            assert first is not second
            found = [one.execute("PRAGMA synchronous").fetchone()[0] for one in (first, second)]
            modes = [one.execute("PRAGMA journal_mode").fetchone()[0] for one in (first, second)]
    assert (found, modes) == ([level] * 2, ["wal"] * 2)


def test_a_directory_that_is_there_keeps_its_mode(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o755)
    with open_driver(tmp_path / "log.db") as driver:
        publish(driver, "t", [1])
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite://relative.db", "sqlite://relative.db/"),
        ("sqlite://var/log.db", "sqlite://var/log.db"),
        ("sqlite://user:s3cr3t@/log.db", "sqlite://user:***@/log.db"),
    ],
)
def test_a_slash_too_few_is_no_private_log(url: str, shown: str) -> None:
    with pytest.raises(InvalidTransportURL) as caught:
        transport.get_notification_transport(cfg.ConfigOpts(), url)
    assert str(caught.value) == (
        f"transport URL {shown!r}: SQLite takes no host: write sqlite:///relative.db, "
        "sqlite:////absolute.db, or sqlite:// for a private temporary log"
    )


def test_a_slash_too_few_in_a_file_is_said_to_be_there(tmp_path: pathlib.Path) -> None:
    conf, path = cfg.ConfigOpts(), tmp_path / "service.conf"
    path.write_text("[notifications]\ntransport_url = sqlite://relative.db\n")
    conf([], default_config_files=[str(path)])
    with pytest.raises(InvalidTransportURL) as caught:
        transport.get_notification_transport(conf)
    assert str(caught.value).startswith(f"{path}, [notifications] transport_url: transport URL 'sqlite://rel")


def test_what_was_published_is_there_after_reopening(tmp_path: pathlib.Path) -> None:
    for number in range(3):
        with open_driver(tmp_path / "log.db") as driver:
            publish(driver, "t", [number])
    with open_driver(tmp_path / "log.db") as driver:
        assert numbers(read_all(driver, "t")) == [0, 1, 2]


def test_a_relative_path_stays_where_it_was_meant(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    driver = make_driver("log.db")
    monkeypatch.chdir("/")
    publish(driver, "t", [1])
    driver.close()
    assert (tmp_path / "log.db").exists()


def test_a_private_log_is_made_late_and_leaves_nothing() -> None:
    driver = make_driver(None)
    publish(driver, "t", [1])
    path = pathlib.Path(driver.admin().describe_topic("t").details["file"])
    assert mode(path.parent) == 0o700
    assert numbers(read_all(driver, "t")) == [1]
    driver.close()
    assert not path.parent.exists()


def test_a_private_log_goes_with_a_process_that_closes_nothing() -> None:
    code = (
        "from tests.unit.drivers.sqlite.sqlite_rig import make_driver, publish; driver = make_driver(None); "
        "publish(driver, 't', [1]); print(driver.admin().describe_topic('t').details['file'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not pathlib.Path(done.stdout.strip()).parent.exists()
    assert done.stderr == ""


def test_a_foreign_file_is_refused_and_untouched(tmp_path: pathlib.Path, use: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and no database\n" * 100)
    before = path.read_bytes()
    assert "not an SQLite database" in refusal(use, path)
    assert path.read_bytes() == before


def test_a_foreign_database_is_refused_and_untouched(tmp_path: pathlib.Path, use: str) -> None:
    path = tmp_path / "browser.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE history (url TEXT)")
        connection.commit()
    before = path.read_bytes()
    assert "another program" in refusal(use, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("version", "advice"), [(99, "upgrade notifier-kafka"), (1, "empty it with the version that wrote it")]
)
def test_another_schema_is_refused(tmp_path: pathlib.Path, use: str, version: int, advice: str) -> None:
    path = tmp_path / "log.db"
    with open_driver(path) as driver:
        publish(driver, "t", [1])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
    assert advice in refusal(use, path)


def test_a_damaged_log_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.db"
    with open_driver(path) as driver:
        publish(driver, "t", range(5_000))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with open_driver(path) as driver, pytest.raises(LogUnusable, match="damaged") as caught:
        read_all(driver, "t")
    assert str(path) in str(caught.value)


def test_a_directory_is_refused(tmp_path: pathlib.Path, use: str) -> None:
    assert "not a regular file" in refusal(use, tmp_path)


def test_a_parent_that_is_a_file_is_refused(tmp_path: pathlib.Path, use: str) -> None:
    (tmp_path / "file").write_text("")
    refusal(use, tmp_path / "file" / "log.db")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("what", ["directory", "file"])
def test_what_may_not_be_written_is_refused(what: str, use: str) -> None:
    directory = pathlib.Path(tempfile.mkdtemp())
    try:
        path = directory / "log.db"
        if what == "file":
            with open_driver(path) as driver:
                publish(driver, "t", [1])
            path.chmod(0o444)
            directory.chmod(0o777)
            (directory / "log.db-lock").chmod(0o666)
        else:
            directory.chmod(0o555)
        pid = os.fork()
        if pid == 0:
            # The administrator may write everywhere; who that is becomes nobody.
            if os.geteuid() == 0:
                os.setuid(65534)
            status = 1
            try:
                told = refusal(use, path)
                status = 0 if "owner" in told and "mode" in told else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        directory.chmod(0o755)
        shutil.rmtree(directory)


def test_an_empty_file_becomes_a_log(tmp_path: pathlib.Path) -> None:
    (tmp_path / "log.db").touch()
    (tmp_path / "log.db").chmod(0o666)
    with open_driver(tmp_path / "log.db") as driver:
        publish(driver, "t", [1])
        assert {mode(file) for file in tmp_path.iterdir()} == {0o600}
        assert numbers(read_all(driver, "t")) == [1]


def test_too_few_file_handles_pass(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with open_driver(tmp_path / "log.db") as driver:
        monkeypatch.setattr(os, "open", fail)
        with pytest.raises(TransportUnavailable):
            driver.spans(["t"])
        monkeypatch.undo()
        assert driver.spans(["t"]) == []
