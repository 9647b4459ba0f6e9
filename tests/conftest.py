"""What all tests share: tiers and groups, loggers as they were, an environment with oslo.messaging."""

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

from tests.shared.shared_run import SharedRun

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

pytest_plugins = [
    "tests.shared.browser_fixture",
    "tests.shared.faults_fixtures",
    "tests.shared.kafka.fixtures",
    "tests.shared.spark.fixtures",
]

HERE = pathlib.Path(__file__).parent
VERSION = "18.3.1"
PEER = (f"oslo.messaging[kafka]=={VERSION}", "oslo.middleware", "oslo.service[threading]", "fixtures")


# These are closed by the garbage collector, and not where they were left: py4j's and kafka-python's.
LEFT_OPEN = {
    "spark": "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
    "kafka": r"ignore:Exception ignored in. <ssl\.SSLSocket:pytest.PytestUnraisableExceptionWarning",
}
# One Spark session, one warm JVM, one browser: the tests of these directories run in one process each.
ONE_OF_A_KIND = {"tests/spark", "tests/long/spark", "tests/report", "tests/long/report"}
CLIENTS = ("confluent-kafka", "kafka-python")
# The longest first, so that none of them is alone at the end.
FIRST = ("spark", "kafka", "long")

_RUN = pytest.StashKey[SharedRun]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[_RUN] = SharedRun()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _RUN in config.stash:
        config.stash[_RUN].end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long, and begin with what takes longest."""
    for item in items:
        rooms = item.path.relative_to(HERE).parts
        only_with = item.get_closest_marker("long_with")
        if rooms[0] == "long" or (only_with and _client(item) in only_with.args):
            item.add_marker(pytest.mark.long)
        for room in LEFT_OPEN.keys() & set(rooms):
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN[room]))
    items.sort(key=_turn)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run in one process what shares a JVM or a browser, or else a file and a client library."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    # Not xdist's own groups: 3.8 writes them where pytest 9.2 does not look any more.
    scheduler._split_scope = group_of
    return scheduler


def group_of(nodeid: str) -> str:
    """Name the group of a test: by directory where that has one JVM or browser, else by file and client."""
    file, _, test = nodeid.partition("::")
    directory = file.rpartition("/")[0]
    if directory in ONE_OF_A_KIND:
        return directory
    client = next((each for each in CLIENTS if each in test), "")
    return f"{file} {client}"


def _client(item: pytest.Item) -> str | None:
    """Name the client library that a test runs with, where it runs with each."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("client") if callspec else None


def _turn(item: pytest.Item) -> int:
    rooms = item.path.relative_to(HERE).parts
    return next((turn for turn, room in enumerate(FIRST) if room in rooms), len(FIRST))


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
