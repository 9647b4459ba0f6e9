"""A network of this run's own, in which packets to or from a port can be dropped.

Everything of the harness then runs in one network namespace: its loopback device joins brokers
and clients, and the rules of routing, which know ports, cut them apart. That needs neither
netfilter nor traffic control, which small kernels lack.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

MARK = "NOTIFIER_KAFKA_FAULTS_NAMESPACE"
BEFORE_LOCAL, LOCAL = "10", "100"


def enter() -> None:
    """Begin anew in a namespace, where this process may make one."""
    if owned() or not _ways():
        return
    os.environ[MARK] = "made"
    os.execvp("unshare", [*_ways(), sys.executable, "-m", "faults", *sys.argv[1:]])


def owned() -> bool:
    return os.environ.get(MARK) == "made"


def prepare() -> None:
    """Switch the loopback device on, and have rules come before what is local."""
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


def _ways() -> list[str]:
    ways = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    try:
        tried = subprocess.run([*ways, "ip", "link"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return ways if tried.returncode == 0 else []


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
