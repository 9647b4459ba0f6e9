"""Every private name of kafka-python that is used is in the table, and a missing one is refused by name."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import kafka
import pytest

from notifier_kafka_drivers.kafka.clients.kafka_python.patches import required
from tests.shared.checkout import ROOT

ADAPTER = ROOT / "drivers/kafka/clients/kafka_python"
PATCHES = sorted((ADAPTER / "patches").glob("*.py"))
UNDOCUMENTED = ("kafka.cluster", "kafka.coordinator", "kafka.consumer.fetcher", "kafka.net", "kafka.record")
KNOWN = {name for names in required.REQUIRED.values() for name in names}

PROGRAM = """
import importlib, sys
owner, name, change = sys.argv[1:]
module, _, kind = owner.rpartition(".")
kind = getattr(importlib.import_module(module), kind)
if change == "deleted":
    delattr(kind, name)
else:
    setattr(kind, name, lambda self, something_new: None)
from notifier_kafka.errors import MessagingException
from notifier_kafka_drivers.kafka.clients import loading
try:
    loading.load("kafka-python")
except MessagingException as error:
    print(type(error).__name__, error)
"""


def private_attributes(tree: ast.AST) -> Iterator[str]:
    """Name the private attributes of objects other than ``self``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value
            if not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")):
                yield node.attr


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_no_private_name_is_used_outside_the_patches() -> None:
    used = {path.name: set(private_attributes(ast.parse(path.read_text()))) for path in ADAPTER.glob("*.py")}
    assert {name: attributes for name, attributes in used.items() if attributes} == {}


def test_no_undocumented_module_is_imported_outside_the_patches() -> None:
    for path in ADAPTER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.level:
                imported = {f"{node.module}.{each.name}" for each in node.names}
                assert not any(
                    f"{each}.".startswith(f"{bad}.") for each in imported for bad in UNDOCUMENTED
                ), path


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_every_private_name_of_a_patch_is_in_the_table(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert set(private_attributes(tree)) - KNOWN == set()


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_every_patch_says_what_it_waits_for(path: Path) -> None:
    if path.stem not in ("__init__", "required"):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert re.search(r"^Waits for: (issue \d+|nothing, .* reported upstream yet)", text, re.M)


def test_this_version_has_every_name() -> None:
    required.check()


@pytest.mark.parametrize(
    ("owner", "name", "change", "problem"),
    [
        ("kafka.net.transport.KafkaTCPTransport", "_sock_recv", "deleted", "there is no {}"),
        ("kafka.cluster.ClusterMetadata", "topic_id", "deleted", "there is no {}"),
        (
            "kafka.record.default_records.DefaultRecordBatch",
            "_maybe_uncompress",
            "changed",
            "{} takes (self, something_new) instead of (self)",
        ),
    ],
)
def test_a_name_that_is_missing_or_changed_is_refused_in_one_line(
    owner: str, name: str, change: str, problem: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, owner, name, change]
    (line,) = subprocess.check_output(command, text=True).splitlines()
    assert line.startswith("DriverLoadFailure kafka-python: ")
    assert f"kafka-python {kafka.__version__} is not supported: {problem.format(f'{owner}.{name}')}: " in line
    assert line.endswith("install another one with: pip install 'kafka-python>=3.0.1,<3.1'")


def test_all_unknown_names_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        "kafka.KafkaConsumer": {"_no_such": None, "poll": "self", "_client": None},
        "kafka.KafkaConsumer.NoSuchClass": {"x": None},
        "kafka.no_such_module.Class": {"x": None},
    }
    monkeypatch.setattr(required, "REQUIRED", table)
    with pytest.raises(required.ConfigurationError) as raised:
        required.check()
    problems = (
        "there is no kafka.KafkaConsumer._no_such",
        "kafka.KafkaConsumer.poll takes (self, timeout_ms=, max_records=, update_offsets=) instead of (self)",
        "there is no kafka.KafkaConsumer.NoSuchClass",
        "there is no kafka.no_such_module.Class",
    )
    about = f"kafka-python {kafka.__version__} is not supported"
    assert str(raised.value).startswith(f"{about}: {'; '.join(problems)}: install another ")


def test_the_supported_versions_are_those_of_the_distribution() -> None:
    lines = (ROOT / "setup.cfg").read_text().splitlines()
    assert required.SUPPORTED in map(str.strip, lines)
