"""A network namespace for the whole run, where packets to or from a port are dropped on demand.

Brokers and clients share its loopback device, and routing rules, which know ports, separate them.
That needs neither netfilter nor traffic control, which small kernels lack. The run has a mount
namespace too: its own hosts file covers that of the machine, and no name server is reachable.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

ENTERED_VARIABLE = "NOTIFIER_KAFKA_FAULTS_NAMESPACE"
FIRST_PREFERENCE, LOCAL_PREFERENCE = "10", "100"
HOSTS_FILE = pathlib.Path("/etc/hosts")
BROKER_NAME = "broker.faults.test"


def enter() -> None:
    """Start this program again in a new namespace, where we may make one."""
    if is_entered() or not _unshare_command():
        return
    os.environ[ENTERED_VARIABLE] = "made"
    os.execvp("unshare", [*_unshare_command(), sys.executable, "-m", "faults", *sys.argv[1:]])


def is_entered() -> bool:
    return os.environ.get(ENTERED_VARIABLE) == "made"


def prepare(directory: pathlib.Path) -> None:
    """Enable the loopback device, put our rules before the local table, and name the broker."""
    hosts = directory / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {BROKER_NAME}\n")
    subprocess.run(["mount", "--bind", str(hosts), str(HOSTS_FILE)], check=True)
    _ip("link", "set", "lo", "up")
    _ip("rule", "add", "pref", LOCAL_PREFERENCE, "lookup", "local")
    _ip("rule", "del", "pref", "0")


@contextlib.contextmanager
def packets_dropped(*selectors: str) -> Iterator[None]:
    """Drop packets by selectors: "dport 9092" for those to a port, "sport 9092" for those from it."""
    rules = [
        ["pref", FIRST_PREFERENCE, "ipproto", "tcp", *selector.split(), "blackhole"] for selector in selectors
    ]
    try:
        for rule in rules:
            _ip("rule", "add", *rule)
        yield
    finally:
        for rule in rules:
            _ip("rule", "del", *rule)


@contextlib.contextmanager
def broker_name_unknown() -> Iterator[None]:
    """Remove the broker's name from the hosts file."""
    known = HOSTS_FILE.read_text()
    HOSTS_FILE.write_text("127.0.0.1 localhost\n")
    try:
        yield
    finally:
        HOSTS_FILE.write_text(known)


def _unshare_command() -> list[str]:
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *rights, "--net", "--mount"]
    try:
        tried = subprocess.run([*command, "ip", "link"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return command if tried.returncode == 0 else []


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
