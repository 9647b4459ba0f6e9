"""What the harness measures, from histories written by hand; and its proxy."""

import json
import pathlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from faults import rows, table, timings
from faults.rows import Row, broken_limits
from faults.topology.proxy import LinkQuality, Proxy
from faults.workload import publisher
from notifier_kafka.config import options

SECOND = 1_000_000_000


def write(directory: pathlib.Path, name: str, lines: list[dict[str, Any]]) -> None:
    (directory / f"{name}.history").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_the_longest_call_and_the_longest_way_back(tmp_path: pathlib.Path) -> None:
    def offered(number: int, key: str, at: float) -> dict[str, Any]:
        return {"type": "offered", "id": f"a-{number}", "key": key, "at": int(at * SECOND)}

    took = [{"type": "accepted", "id": "x", "took": 0.001} for _ in range(198)]
    took += [{"type": "accepted", "id": "x", "at": SECOND, "first": 0.2}]
    took += [{"type": "accepted", "id": "x", "took": slow} for slow in (0.03, 0.05)]
    # The second key is handled again after three seconds; what was offered before does not count.
    write(
        tmp_path,
        "one",
        [offered(0, "j", 1), offered(1, "j", 5), offered(2, "k", 6), offered(3, "k", 7), *took],
    )
    handled = [("a-0", 9.5), ("a-1", 5.5), ("a-2", 8.0), ("a-3", 9.0)]
    for pool, shift in (("two", 0.0), ("three", -0.5)):
        done = [(each, int((at + shift) * SECOND)) for each, at in handled]
        write(tmp_path, pool, [{"type": "handled", "pool": pool, "id": each, "at": at} for each, at in done])
    write(tmp_path, "harness", [{"type": "repaired", "at": 5 * SECOND}])
    assert timings.measure(tmp_path) == timings.Timings(
        stall=0.05, own_stall=0.2, p99=0.03, first_call=0.2, recovery=3.0, calls=200
    )


def test_a_stall_that_a_late_processor_explains_is_not_our_own(tmp_path: pathlib.Path) -> None:
    def call(at: float, took: float, queued: float) -> dict[str, Any]:
        return {"type": "accepted", "id": "x", "at": int(at * SECOND), "took": took, "queued": queued}

    def control(at: float, late: float, work: float = 0.0001) -> dict[str, Any]:
        return {"type": "control", "at": int(at * SECOND), "late": late, "work_seconds": work}

    # The machine had 0.3 s of the first call, which both processors show, and nothing of the second.
    write(tmp_path, "one", [call(1.0, 0.4, 0.1), call(2.0, 0.15, 0.2)])
    late = [control(0.8, 0.2), control(0.9, 0.2)]
    (tmp_path / "control-0.control").write_text("".join(f"{json.dumps(line)}\n" for line in late))
    usual = [control(3.0, 0.01)] * 97 + [control(4.0, 0.01, 0.0021)] * 3
    (tmp_path / "control-1.control").write_text("".join(f"{json.dumps(line)}\n" for line in usual))
    found = timings.measure(tmp_path)
    assert (found.stall, found.own_stall) == pytest.approx((0.4, 0.2))
    assert found.noise == pytest.approx(0.002)


def test_memory_is_counted_from_the_first_word_of_each_life(tmp_path: pathlib.Path) -> None:
    def memory(resident: float, peak: float) -> dict[str, Any]:
        return {"type": "memory", "at": 1, "resident": resident, "peak": peak}

    lives = [memory(50, 50), memory(40, 70), {"type": "started", "at": 2}, memory(90, 95)]
    write(tmp_path, "one", lives)
    assert timings.measure(tmp_path).memory_growth == 30


def test_an_own_stall_that_is_too_long_breaks_a_promise() -> None:
    good = timings.Timings(stall=9.0, own_stall=0.05, p99=0.003, noise=0.002, memory_growth=128, calls=1000)
    assert broken_limits(good, 128.0) == []
    slow = timings.Timings(stall=0.06, own_stall=0.06, p99=0.004, noise=0.002, memory_growth=129, calls=1000)
    assert [each.partition(":")[0] for each in broken_limits(slow, 128.0)] == ["stall", "p99", "memory"]
    assert [each.partition(":")[0] for each in broken_limits(slow._replace(calls=999), 128.0)] == [
        "stall",
        "memory",
    ]


def test_an_outbox_has_the_memory_that_is_promised() -> None:
    defaults = publisher.connect("sqlite:///unused.db", {}).conf[options.NOTIFICATIONS]
    assert (defaults.outbox_bytes, defaults.outbox_records) == (rows.OUTBOX_BYTES, rows.OUTBOX_RECORDS)
    assert rows.allowed_growth({}, 0) == 64.0
    assert rows.allowed_growth({}, 10**6) == 64.0 + 100_000 * 2 / 1024
    small = {"notifications.outbox_records": 512, "notifications.outbox_bytes": 2**20}
    assert rows.allowed_growth(small, 10**6) == 2.0
    assert rows.allowed_growth(small | {"notifications.spool_dir": "d"}, 256) == 3.0


def test_nothing_is_measured_of_nothing(tmp_path: pathlib.Path) -> None:
    assert timings.measure(tmp_path) == timings.Timings()


def test_a_row_that_broke_a_promise_says_so() -> None:
    times = timings.Timings(0.01, 0.01, 0.001, 0.0001, 0.1, 0.5, 40.0, 200)
    row = Row("f", "b", 1, 2.0, 3, 3, 0, 3, 1, 0, 0, 0, 0, *times, 128.0, ["lost: a-1"])
    assert table.line(row).endswith("BROKEN")
    assert len(table.line(row).removesuffix("  BROKEN")) == len(table.HEADER)
    assert table.violations([row]) == ["f on b: lost: a-1"]


class Echo(socketserver.BaseRequestHandler):
    """Sends back what it receives."""

    closed = threading.Event()

    def handle(self) -> None:
        while data := self.request.recv(100):
            self.request.sendall(data)
        self.closed.set()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        made.target = server.server_address[1]
        threading.Thread(target=server.serve_forever).start()
        yield made
        made.close()
        server.shutdown()


def said(client: socket.socket, text: bytes) -> bytes:
    client.sendall(text)
    return client.recv(100)


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=30)


def test_the_proxy_carries_cuts_and_mends(proxy: Proxy) -> None:
    proxy.quality = LinkQuality(delay=0.001, loss=0.5)
    with connected(proxy) as client:
        assert said(client, b"a") == b"a"
        proxy.cut()
        assert client.recv(1) == b""
    with connected(proxy) as client:
        assert client.recv(1) == b""
    proxy.repair()
    with connected(proxy) as client:
        assert said(client, b"b") == b"b"


def test_a_half_open_connection_is_known_to_the_server_alone(proxy: Proxy) -> None:
    Echo.closed.clear()
    with connected(proxy) as client:
        assert said(client, b"a") == b"a"
        proxy.half_open()
        assert Echo.closed.wait(30)
        client.sendall(b"b")
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.recv(1)
    with connected(proxy) as client:
        assert said(client, b"c") == b"c"
