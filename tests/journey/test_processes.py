"""Four publishers and three listeners on one log; one of each is killed half-way."""

import collections
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
COUNT = 5_000  # of each publisher
TIMEOUT_SECONDS = 120.0


def _start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(HERE / script), *arguments])


def _lines(*paths: Path) -> list[str]:
    # A killed process may leave half a line, which does not count.
    return [
        line
        for path in paths
        if path.exists()
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"timed out after {TIMEOUT_SECONDS} s waiting for {what}"
        time.sleep(0.05)


def test_a_killed_publisher_and_a_killed_listener_lose_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bus.db'}?session_timeout=2"
    acknowledged = [tmp_path / f"acknowledged-{number}" for number in range(4)]
    handled = [tmp_path / f"handled-{number}" for number in range(3)]
    listeners = [_start("listener_process.py", url, "workers", str(path)) for path in handled]
    publishers = [
        _start("publisher_process.py", url, f"publisher{number}", str(COUNT), str(path))
        for number, path in enumerate(acknowledged)
    ]
    try:
        _wait_for(lambda: len(_lines(acknowledged[0])) > COUNT // 5, "the first publisher's start")
        publishers[0].send_signal(signal.SIGKILL)
        _wait_for(lambda: len(_lines(handled[0])) > COUNT // 10, "the first listener's start")
        listeners[0].send_signal(signal.SIGKILL)
        listeners[0].wait(TIMEOUT_SECONDS)
        handled_by_then = set(_lines(*handled))
        assert [process.wait(TIMEOUT_SECONDS) for process in publishers] == [-signal.SIGKILL, 0, 0, 0]
        assert len(_lines(acknowledged[0])) < COUNT, "the publisher was killed too late to prove anything"

        promised = set(_lines(*acknowledged))
        assert not promised <= handled_by_then, "the listener was killed too late to prove anything"
        _wait_for(lambda: promised <= set(_lines(*handled)), "every acknowledged notification")
        for process in listeners[1:]:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(TIMEOUT_SECONDS) for process in listeners] == [-signal.SIGKILL, 0, 0]
    finally:
        for process in publishers + listeners:
            process.kill()
            process.wait()

    times = collections.Counter(_lines(*handled))
    assert promised <= set(times)
    # What is handled twice was polled by the killed listener and not committed: a batch
    # of 500 for each of its partitions at most.
    assert sum(times.values()) - len(times) <= 4 * 500
