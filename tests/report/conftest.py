"""A browser for the page: Debian's Chromium."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.shared import debian


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = debian.program("chromium", lambda: shutil.which("chromium"))
    with sync_playwright() as playwright:
        # In a container there is no other sandbox to be had than the container.
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()
