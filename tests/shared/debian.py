"""Programs of Debian's packages that tests need, installed where they are not there."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive"}


def program(package: str, find: Callable[[], str | None]) -> str:
    """Return what ``find`` finds, if need be after installing the package. Fails the test without it."""
    install = f"apt-get install -y -q --no-install-recommends {package}"
    # One test process after the other: two of Debian's installers at once refuse each other.
    with Path(tempfile.gettempdir(), "notifier-kafka-tests-debian.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not find() and os.geteuid() == 0 and shutil.which("apt-get"):
            for command in ("apt-get update -q", install):
                _do(command)
        found = find()
    if not found:
        pytest.fail(f"a test needs the package {package}, which is not here: {install}", pytrace=False)
    return found


def _do(command: str) -> None:
    done = subprocess.run(
        command.split(), env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"{command}: {done.stderr or done.stdout}", pytrace=False)
