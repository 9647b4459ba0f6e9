"""A PostgreSQL of our own: a fresh cluster on loopback, gone with the tests."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pg8000.dbapi

from tests.shared import debian

USER, PASSWORD, DATABASE = "ann", "se:cr/et", "metrics"
DEADLINE = 120.0


def program(name: str) -> str:
    """Find a program of the server, which Debian keeps out of the PATH."""

    def find() -> str | None:
        beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        return shutil.which(name) or (str(beside[-1]) if beside else None)

    return debian.program("postgresql", find)


@contextmanager
def postgresql() -> Iterator[str]:
    """Run a server; yield the URL of its database."""
    initdb, server = program("initdb"), program("postgres")
    # It refuses to be run by root, and the directories of pytest are its user's alone.
    account = pwd.getpwnam("postgres") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    place = Path(tempfile.mkdtemp(prefix="notifier-kafka-postgresql-"))
    become = ["setpriv", "--pdeathsig", "INT"]
    if os.getuid() == 0:
        become += ["--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups"]
    try:
        (place / "password").write_text(PASSWORD)
        for path in (place, place / "password"):
            os.chown(path, account.pw_uid, account.pw_gid)
        made = [initdb, "-D", f"{place}/data", "-U", USER, "-A", "scram-sha-256", "-E", "UTF8", "--no-sync"]
        subprocess.run(
            [*become, *made, f"--pwfile={place}/password"], check=True, stdout=subprocess.DEVNULL, cwd=place
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = ["-p", str(port), "-h", "127.0.0.1", "-k", str(place)]
        with (place / "log").open("w") as log:
            running = subprocess.Popen(
                [*become, server, "-D", f"{place}/data", *options], stderr=log, cwd=place
            )
        try:
            _create(port, running, place / "log")
            yield f"postgresql://{USER}:se%3Acr%2Fet@127.0.0.1:{port}/{DATABASE}"
        finally:
            running.terminate()
            running.wait(DEADLINE)
    finally:
        shutil.rmtree(place)


def connect(port: int, database: str) -> Any:
    return pg8000.dbapi.connect(user=USER, password=PASSWORD, host="127.0.0.1", port=port, database=database)


def _create(port: int, running: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            connection = connect(port, "postgres")
            break
        except (pg8000.dbapi.Error, OSError):
            assert running.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {DATABASE}")
    connection.close()
