"""Every entry point that setup.cfg declares leads to what its namespace promises."""

import configparser
import inspect
import warnings
from importlib import metadata
from typing import Any

import pytest
from cliff.command import Command

from notifier_kafka.contract.driver import Driver
from notifier_kafka.publishing.channels.channel import Channel
from tests.shared.checkout import ROOT


def _declared() -> list[metadata.EntryPoint]:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read(ROOT / "setup.cfg")
    return [
        metadata.EntryPoint(name.strip(), value.strip(), namespace)
        for namespace, text in parser["options.entry_points"].items()
        for name, _, value in (line.partition("=") for line in text.strip().splitlines())
        if not line_is_comment(name)
    ]


def line_is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _fits(namespace: str, loaded: Any) -> bool:
    bases = {
        "notifier_kafka.drivers": Driver,
        "notifier_kafka.channels": Channel,
        "notifier_kafka.commands": Command,
    }
    if namespace in bases:
        return issubclass(loaded, bases[namespace]) and not inspect.isabstract(loaded)
    if namespace == "oslo.config.opts":
        return all(opts for _, opts in loaded())
    return callable(loaded) or namespace == "pytest11"


@pytest.mark.parametrize("entry", _declared(), ids=lambda entry: f"{entry.group}:{entry.name}")
def test_entry_point_loads(entry: metadata.EntryPoint) -> None:
    with warnings.catch_warnings():
        # A client library that is loaded here for the first time may deprecate what it likes.
        warnings.simplefilter("ignore", DeprecationWarning)
        loaded = entry.load()

    assert _fits(entry.group, loaded)


def test_names_that_users_rely_on_are_declared() -> None:
    declared = {(entry.group, entry.name) for entry in _declared()}

    assert {
        ("notifier_kafka.drivers", "sqlite"),
        *(("notifier_kafka.channels", name) for name in CHANNELS),
        *(("notifier_kafka.keys", name) for name in ("publisher_id", "event_type", "none", "payload")),
        *(("notifier_kafka.commands", name) for name in COMMANDS),
        ("console_scripts", "notifier-kafka"),
    } <= declared


CHANNELS = ("messaging", "messagingv2", "cloudevents", "log", "noop", "test", "routing")
COMMANDS = (
    *("send", "listen", "tail", "replay", "aggregate", "report", "top", "bench", "demo", "doctor"),
    *(f"topics {verb}" for verb in ("list", "show", "create", "delete", "purge")),
    *(f"groups {verb}" for verb in ("list", "lag", "reset")),
    *(f"dead-letters {verb}" for verb in ("list", "show", "requeue")),
    *("spool status", "spool flush", "metrics show", "drivers list"),
    *(f"broker {verb}" for verb in ("start", "stop", "status", "logs")),
    *(f"config {verb}" for verb in ("sample", "show", "validate", "import-json")),
)
