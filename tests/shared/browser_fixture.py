"""A browser for the page: Debian's Chromium."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.shared import debian

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    chromium = debian.program("chromium", lambda: shutil.which("chromium"))
    with sync_playwright() as playwright:
        # In a container there is no other sandbox to be had than the container.
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()
