"""The newest and the oldest kafka-python in range have every name that the patches use."""

import os
import pathlib
import subprocess
import sys
import venv

import pytest

from notifier_kafka_drivers.kafka.clients.kafka_python.patches import required
from tests.shared.checkout import ROOT

TESTS = "tests/unit/drivers/kafka/clients/kafka_python"
CHECK = """
import kafka
from notifier_kafka_drivers.kafka.clients import loading
from notifier_kafka_drivers.kafka.clients.kafka_python.patches import required
required.check()
assert loading.load("kafka-python").__name__ == "KafkaPython"
print(kafka.__file__, kafka.__version__)
"""


OLDEST = required.SUPPORTED.partition(",")[0].replace(">=", "==")


@pytest.fixture(scope="module", params=[required.SUPPORTED, OLDEST], ids=["newest", "oldest"])
def libraries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A release, installed by pip into a directory of its own."""
    base = tmp_path_factory.mktemp("release")
    venv.create(base / "venv", with_pip=True)
    pip = [str(base / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    subprocess.run([*pip, "--target", str(base / "libraries"), str(request.param)], check=True, timeout=300)
    return base / "libraries"


def run(libraries: pathlib.Path, *arguments: str) -> str:
    """Run this Python with that release before the one that is installed here."""
    environment = os.environ | {"PYTHONPATH": str(libraries)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=600
    ).stdout


def test_every_name_is_there(libraries: pathlib.Path) -> None:
    path, _version = run(libraries, "-W", "ignore", "-c", CHECK).split()
    assert pathlib.Path(path).is_relative_to(libraries)


def test_the_patches_pass_their_tests(libraries: pathlib.Path) -> None:
    run(libraries, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS)
