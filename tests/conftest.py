"""What all tests share: their order, loggers as they were, oslo.messaging. (Brokers: setup.cfg.)"""

import fcntl
import itertools
import logging
import os
import pathlib
import subprocess
import sys
import venv
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest

# An example that takes long says something of the machine only.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

# The second compiler of a JVM takes a third of the processor time of a Spark that lives for minutes. Nothing
# is printed of these, and they hold for what the tests start as well.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
for _of in ("SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(_of, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

VERSION = "18.3.1"
# Directories whose tests compute, and whose tests wait for most of their time.
COMPUTING, WAITING = ("report", "spark"), ("interop", "journey", "kafka")
PEER = (f"oslo.messaging[kafka]=={VERSION}", "oslo.middleware", "oslo.service[threading]", "fixtures")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have tests that compute run beside some that wait.

    Of either kind alone three at a time leave two processors idle, or take turns for them.
    """
    files = list(dict.fromkeys(item.path for item in items))
    mixed: dict[pathlib.Path, float] = {}
    for names in (COMPUTING, WAITING):
        mine = [file for file in files if file.parent.name in names]
        mixed |= {file: (number + 0.5) / len(mine) for number, file in enumerate(mine)}
    before = set(itertools.takewhile(lambda file: file not in mixed, files))
    items.sort(key=lambda item: -1.0 if item.path in before else mixed.get(item.path, 2.0))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, Any, Any]:
    """Have each test find the loggers as they were: the commands set up those of the process."""
    root = logging.getLogger()
    ours = {name: logging.getLogger(name) for name in root.manager.loggerDict if name.startswith("notifier")}
    before = root.level, root.handlers[:], {name: logger.level for name, logger in ours.items()}
    result = yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    for name, level in before[2].items():
        ours[name].setLevel(level)
    return result


@pytest.fixture(scope="session")
def peer(pytestconfig: pytest.Config) -> pathlib.Path:
    """Install oslo.messaging into an environment of its own, kept in pytest's cache."""
    assert pytestconfig.cache is not None
    python_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Another name for what holds other things: what is there is not looked into.
    home = pytestconfig.cache.mkdir(f"oslo.messaging-kafka-service-{VERSION}-py{python_version}")
    python, ready = home / "bin" / "python", home / "ready"
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may share the cache
        if not ready.exists():
            venv.create(home, with_pip=True, clear=False)
            install = [str(python), "-m", "pip", "install", "--quiet", *PEER]
            done = subprocess.run(install, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            ready.touch()
    return python
