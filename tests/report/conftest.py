"""A browser for the page: Debian's Chromium, which is installed here if it is not there."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

# The helpers of these tests are modules beside them.
sys.path.insert(0, str(Path(__file__).parent))

INSTALL = "apt-get install -y --no-install-recommends chromium"


def _chromium() -> str:
    # One test process after the other: two of Debian's installers at once are refused.
    with Path(tempfile.gettempdir(), "notifier-kafka-tests-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shutil.which("chromium") and os.geteuid() == 0 and shutil.which("apt-get"):
            for command in ("apt-get update", INSTALL):
                _do(command)
    found = shutil.which("chromium")
    if not found:
        pytest.fail(f"the page is tested in Chromium, which is not here: {INSTALL}", pytrace=False)
    return found


def _do(command: str) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command.split(), env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{command}: {done.stderr or done.stdout}", pytrace=False)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # In a container there is no other sandbox to be had than the container.
        started = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        yield started
        started.close()
