"""A browser for the page: Debian's Chromium, which is installed here if it is not there."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

# The helpers of these tests are modules beside them.
sys.path.insert(0, str(Path(__file__).parent))

INSTALL = "apt-get install -y --no-install-recommends chromium"


def _chromium() -> str:
    found = shutil.which("chromium")
    if not found and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in ("apt-get update", INSTALL):
            done = subprocess.run(
                command.split(),
                env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                pytest.fail(f"{command}: {done.stderr or done.stdout}", pytrace=False)
        found = shutil.which("chromium")
    if not found:
        pytest.fail(f"the page is tested in Chromium, which is not here: {INSTALL}", pytrace=False)
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # In a container there is no other sandbox to be had than the container.
        started = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        yield started
        started.close()
