"""Who imports whom: what import-linter's contracts cannot say is said here."""

import ast
import configparser
import pathlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ROOMS = ("notifier_kafka", "drivers", "spark_sinks")

# orjson is the extra `fast`: it may be there, and the framework may use it.
CLIENT_LIBRARIES = {"kafka", "confluent_kafka", "sqlite3", "_sqlite3", "apsw", "pyspark", "pyarrow", "plotly"}
ELSEWHERE = {"notifier_kafka_drivers", "spark_sinks", "cliff", "yaml", "pytest"}
# What takes long to import and few programs need; they are imported where they are used.
HEAVY = {"asyncio", "concurrent", "multiprocessing", "ssl", "subprocess", "http", "unittest"}

# oslo.messaging's own entry points, called without a configuration, read the global one.
MAY_USE_CONF = {"notifier_kafka/handlers.py", "notifier_kafka/middleware.py"}

A_DRIVER_SEES = {"driver", "errors", "url", "outbox", "forks"}
# The local cluster is no part of the driver: it starts a broker, as the Spark job starts a JVM,
# and has commands of its own.
THE_LOCAL_CLUSTER_SEES = {
    "drivers/kafka/commands.py": {"cli", "jars"},
    "drivers/kafka/cluster.py": {"jars", "java"},
}


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

    assert "notifier_kafka.options" in loaded
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(CLIENT_LIBRARIES)


def test_options_of_every_room_need_no_client_library() -> None:
    loaded = _run(
        "import sys\n"
        "import notifier_kafka_drivers.kafka.options, notifier_kafka_drivers.sqlite.options\n"
        "import spark_sinks.options\n"
        "print(*sys.modules)\n"
    )

    assert "spark_sinks.options" in loaded
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


def _framework_modules(node: ast.AST) -> Iterator[str]:
    """Name the modules of the framework that an import statement reaches."""
    if isinstance(node, ast.ImportFrom) and not node.level and node.module == "notifier_kafka":
        yield from (name.name for name in node.names)
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
    names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
    yield from (name.split(".")[1] for name in names if name.startswith("notifier_kafka."))


def test_a_driver_sees_the_contract_alone() -> None:
    seen = {
        f"{path}: {module}"
        for path, tree in _modules("drivers")
        for node in ast.walk(tree)
        for module in _framework_modules(node)
        if module not in A_DRIVER_SEES | THE_LOCAL_CLUSTER_SEES.get(path, set())
    }

    assert seen == set()


def test_the_linter_keeps_every_other_module_from_drivers() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / "setup.cfg")
    forbidden = contracts["importlinter:contract:drivers-seam"]["forbidden_modules"].split()
    modules = {found.name for found in pkgutil.iter_modules([str(ROOT / "notifier_kafka")])}

    assert set(forbidden) == {f"notifier_kafka.{name}" for name in modules - A_DRIVER_SEES} | {"spark_sinks"}


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


def test_an_adapter_has_modules_of_less_than_200_lines() -> None:
    adapters = sorted((ROOT / "drivers/kafka/clients").glob("*.py"))

    lengths = {path.name: len(path.read_text().splitlines()) for path in adapters}

    assert {"confluent.py", "kafka_python.py"} <= lengths.keys()
    assert {name: length for name, length in lengths.items() if length >= 200} == {}
