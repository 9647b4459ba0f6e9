"""A network of this run's own, in which packets to or from a port can be dropped, and names forgotten.

Everything of the harness then runs in one network namespace: its loopback device joins brokers
and clients, and the rules of routing, which know ports, cut them apart. That needs neither
netfilter nor traffic control, which small kernels lack. What is mounted is the run's own as well,
so that names can be its own: a file of hosts lies over the machine's, and no name server is in reach.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

MARK = "NOTIFIER_KAFKA_FAULTS_NAMESPACE"
BEFORE_LOCAL, LOCAL = "10", "100"
HOSTS = pathlib.Path("/etc/hosts")
NAME = "broker.faults.test"


def enter() -> None:
    """Begin anew in a namespace, where this process may make one."""
    if owned() or not _ways():
        return
    os.environ[MARK] = "made"
    os.execvp("unshare", [*_ways(), sys.executable, "-m", "faults", *sys.argv[1:]])


def owned() -> bool:
    return os.environ.get(MARK) == "made"


def prepare(directory: pathlib.Path) -> None:
    """Switch the loopback device on, have rules come before what is local, and know a name."""
    hosts = directory / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {NAME}\n")
    subprocess.run(["mount", "--bind", str(hosts), str(HOSTS)], check=True)
    _ip("link", "set", "lo", "up")
    _ip("rule", "add", "pref", LOCAL, "lookup", "local")
    _ip("rule", "del", "pref", "0")


@contextlib.contextmanager
def dropped(*selectors: str) -> Iterator[None]:
    """Drop what selectors such as "dport 9092" fit: to a port, or from it with "sport"."""
    rules = [
        ["pref", BEFORE_LOCAL, "ipproto", "tcp", *selector.split(), "blackhole"] for selector in selectors
    ]
    try:
        for rule in rules:
            _ip("rule", "add", *rule)
        yield
    finally:
        for rule in rules:
            _ip("rule", "del", *rule)


@contextlib.contextmanager
def forgotten() -> Iterator[None]:
    """Have nobody know the name of the broker."""
    known = HOSTS.read_text()
    HOSTS.write_text("127.0.0.1 localhost\n")
    try:
        yield
    finally:
        HOSTS.write_text(known)


def _ways() -> list[str]:
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    ways = ["unshare", *rights, "--net", "--mount"]
    try:
        tried = subprocess.run([*ways, "ip", "link"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return ways if tried.returncode == 0 else []


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
