"""What all tests share: loggers as they were, an environment with oslo.messaging. (Brokers: setup.cfg.)"""

import fcntl
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
PEER = (f"oslo.messaging[kafka]=={VERSION}", "oslo.middleware", "oslo.service[threading]", "fixtures")


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
