"""Who imports whom: what import-linter's contracts cannot say is said here."""

import ast
import collections
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.shared.checkout import ROOT

ROOMS = ("notifier_kafka", "drivers", "spark_sinks")

# orjson is the extra `fast`: it may be there, and the framework may use it.
CLIENT_LIBRARIES = {"kafka", "confluent_kafka", "sqlite3", "_sqlite3", "apsw", "pyspark", "pyarrow", "plotly"}
ELSEWHERE = {"notifier_kafka_drivers", "spark_sinks", "cliff", "yaml", "pytest"}
# What takes long to import and few programs need; they are imported where they are used.
HEAVY = {"asyncio", "concurrent", "multiprocessing", "ssl", "subprocess", "http", "unittest"}

# oslo.messaging's own entry points, called without a configuration, read the global one.
MAY_USE_CONF = {"notifier_kafka/integrations/logging_handlers.py", "notifier_kafka/integrations/wsgi.py"}


def _modules(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def _run(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_import_of_the_package_is_light_and_silent() -> None:
    loaded = {name.partition(".")[0] for name in _run("import sys, notifier_kafka\nprint(*sys.modules)")}

    assert "oslo_config" in loaded
    assert loaded.isdisjoint(CLIENT_LIBRARIES | ELSEWHERE | HEAVY)


def test_no_module_of_the_framework_brings_a_client_library() -> None:
    # The command line and the fixtures start everything else, but by entry point.
    loaded = _run(
        "import importlib, pkgutil, sys, notifier_kafka\n"
        "for found in pkgutil.walk_packages(notifier_kafka.__path__, 'notifier_kafka.'):\n"
        "    importlib.import_module(found.name)\n"
        "print(*sys.modules)\n"
    )

    assert "notifier_kafka.config.options" in loaded
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(CLIENT_LIBRARIES)


def test_options_of_every_room_need_no_client_library() -> None:
    loaded = _run(
        "import sys\n"
        "import notifier_kafka_drivers.kafka.options, notifier_kafka_drivers.sqlite.options\n"
        "import spark_sinks.job.options\n"
        "print(*sys.modules)\n"
    )

    assert "spark_sinks.job.options" in loaded
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(CLIENT_LIBRARIES)


def test_global_configuration_is_used_by_handlers_and_middleware_alone() -> None:
    found = {
        path
        for path, tree in _modules(*ROOMS)
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.Attribute) and node.attr == "CONF" and getattr(node.value, "id", "") == "cfg"
        )
        or (isinstance(node, ast.ImportFrom) and any(name.name == "CONF" for name in node.names))
    }

    assert found == MAY_USE_CONF


def test_the_house_imports_modules_and_not_the_face() -> None:
    faces = [
        f"{path}:{node.lineno}: from notifier_kafka import {name.name}"
        for path, tree in _modules(*ROOMS)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "notifier_kafka" and not node.level
        for name in node.names
        if not _is_module(ROOT / "notifier_kafka" / name.name)
    ]
    faces += [
        f"{path}:{node.lineno}: import notifier_kafka"
        for path, tree in _modules(*ROOMS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) and any(name.name == "notifier_kafka" for name in node.names)
    ]

    assert faces == []


def _is_module(path: pathlib.Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def test_drivers_import_their_own_room_relatively() -> None:
    # The room has another name in the checkout than where it is installed.
    absolute = {
        f"{path}:{node.lineno}"
        for path, tree in _modules("drivers")
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith(HERE))
        or (isinstance(node, ast.Import) and any(name.name.startswith(HERE) for name in node.names))
    }

    assert absolute == set()


HERE = ("drivers", "notifier_kafka_drivers")


@pytest.mark.parametrize("room", ["drivers", "drivers/kafka", "drivers/sqlite", "spark_sinks"])
def test_packages_have_no_face_of_their_own(room: str) -> None:
    assert (ROOT / room / "__init__.py").read_text() == ""


def test_no_directory_has_more_than_twenty_modules() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    modules = [path for path in map(pathlib.PurePath, listed.stdout.split()) if path.name != "__init__.py"]
    rooms = collections.Counter(path.parent.as_posix() for path in modules)

    assert {"notifier_kafka", "drivers/sqlite", "tests/arch"} <= rooms.keys()
    assert {room: count for room, count in rooms.items() if count > 20} == {}


def test_what_everybody_may_import_imports_nothing_of_the_rooms() -> None:
    """The modules at the top are values, or facades that hand on names of one room."""
    values = {"errors.py", "notification.py", "target.py", "version.py"}
    seen = {
        (path, node.module)
        for path, tree in _modules("notifier_kafka")
        if path.removeprefix("notifier_kafka/") in values
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("notifier_kafka")
    }

    assert seen == set()
