"""A broker that is away costs a person a few seconds and one line, whichever command was given."""

import contextlib
import itertools
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from notifier_kafka.cli import main
from notifier_kafka.cli.exits import Exit

PROGRAM = (sys.executable, "-m", "notifier_kafka.cli.main")
CLIENTS = ("kafka-python", "confluent-kafka")
# Most commands take five seconds and their start; one that waits for the broker never ends.
HANGS = 120.0
ARGUMENTS = {
    "send": "1",
    "listen": "",
    "tail": "",
    "top": "",
    "topics list": "",
    "topics show": "t",
    "topics create": "t",
    "topics delete": "t --yes",
    "topics purge": "t --yes",
    "groups list": "",
    "groups lag": "g",
    "groups reset": "g --to earliest --execute",
    "replay": "a b",
    "dead-letters list": "",
    "dead-letters show": "g",
    "dead-letters requeue": "g --all --execute",
    "spool flush": "--directory spool",
    "bench": "",
    "demo": "--no-spark",
    "aggregate": "--output parquet:metrics",
    "doctor": "",
}
OFFLINE = {
    *(f"broker {verb}" for verb in ("start", "stop", "status", "logs")),
    *(f"config {verb}" for verb in ("sample", "show", "validate", "import-json")),
    *("metrics show", "metrics compact", "report", "spool status", "drivers list", "complete", "help"),
}


@pytest.fixture
def mute() -> Iterator[list[str]]:
    """Three that accept connections and never answer, as brokers do that hang."""
    with contextlib.ExitStack() as stack:
        listening = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        yield [f"127.0.0.1:{each.getsockname()[1]}" for each in listening]


@pytest.fixture
def addresses() -> Iterator[list[str]]:
    """Where nothing listens, and where something accepts and never answers."""
    with socket.socket() as dead, socket.socket() as mute:
        for each in (dead, mute):
            each.bind(("127.0.0.1", 0))
        mute.listen(128)
        yield [f"127.0.0.1:{each.getsockname()[1]}" for each in (dead, mute)]


def test_every_command_says_so_in_a_line(tmp_path: Path, addresses: list[str]) -> None:
    known = {name for name, _ in main.CommandRegistry(main.NAMESPACE)} | {"help"}
    assert ARGUMENTS.keys() | OFFLINE == known
    ways = list(itertools.product(addresses, CLIENTS))
    # Each command in one of the ways, and one of them in all, at once: nearly all of it is waiting.
    tries = [*zip(ARGUMENTS, itertools.cycle(ways)), *(("topics list", way) for way in ways)]
    started = [(name, way, _start(tmp_path, name, *way)) for name, way in tries]
    try:
        ended = [(name, way[0], it.communicate(timeout=HANGS), it.returncode) for name, way, it in started]
    finally:
        for *_, it in started:
            it.kill()
            it.communicate()
    for name, address, (out, err), code in ended:
        said = out if name == "doctor" else err
        assert code == Exit.UNREACHABLE, (name, out, err)
        # Before it doctor tells of the option.
        line = [line for line in said.splitlines() if address in line][-1]
        assert f"{address}: " in line, name
        place = "the given transport URL" if name == "demo" else ".conf, line 3, [DEFAULT] transport_url"
        assert place in line, (name, line)
        assert "notifier-kafka doctor" in err or "-> start the brokers" in out, (name, out, err)
        if name != "doctor":
            assert (out, err.count("\n")) == ("", 1), (name, err)


def test_each_of_several_is_named(tmp_path: Path, mute: list[str]) -> None:
    """Also by the doctor, who gives up on a log that takes long to say what is wrong with it."""
    together = ",".join(mute)
    tries = [(name, client) for name in ("topics list", "groups list", "doctor") for client in CLIENTS]
    started = [(name, _start(tmp_path, name, together, client)) for name, client in tries]
    try:
        ended = [(name, it.communicate(timeout=HANGS), it.returncode) for name, it in started]
    finally:
        for _, it in started:
            it.kill()
            it.communicate()
    for name, (out, err), code in ended:
        said = out if name == "doctor" else err
        assert code == Exit.UNREACHABLE, (name, out, err)
        line = next(line for line in said.splitlines() if "no broker is reached" in line)
        for address in mute:
            assert f"{address}: it accepts connections and does not answer" in line, (name, line)


def _start(directory: Path, name: str, address: str, client: str) -> subprocess.Popen[str]:
    url = f"kafka://{address}/?client={client}"
    # Without the address, which is looked for in what is said.
    path = directory / f"{address.replace(':', '-')}.{client}.conf"
    path.write_text(f"[DEFAULT]\n# a broker that is away\ntransport_url = {url}\n")
    # The demonstration has a log of its own, unless it is told.
    given = ["--transport-url", url] if name == "demo" else ["--config-file", str(path)]
    return subprocess.Popen(
        [*PROGRAM, *given, *name.split(), *ARGUMENTS[name].split()],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
