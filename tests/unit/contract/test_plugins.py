"""Loading plugins of other distributions."""

import json
import pathlib
from importlib import metadata

import pytest

from notifier_kafka.contract import plugins
from notifier_kafka.errors import DriverLoadFailure, DriverNotFound
from notifier_kafka.publishing.channels import messaging


def test_a_plugin_is_loaded_and_not_called() -> None:
    assert plugins.load("notifier_kafka.channels", "messagingv2") is messaging.MessagingChannel


def test_an_unknown_name_tells_the_nearest_and_all_installed() -> None:
    with pytest.raises(DriverNotFound, match="did you mean messagingv2") as caught:
        plugins.load("notifier_kafka.channels", "mesagingv2")
    assert str(caught.value).startswith("mesagingv2: not found: did you mean messagingv2? installed are ")
    assert "routing" in str(caught.value)
    assert not caught.value.retriable


def test_a_failure_names_the_distribution_although_stevedore_forgets_it() -> None:
    entry = metadata.EntryPoint(
        "kafka", "notifier_kafka_drivers.kafka.driver:Driver [confluent]", "notifier_kafka.drivers"
    )
    text = plugins.describe_failure(entry, ModuleNotFoundError("No module named 'x'", name="x"))
    assert text.endswith("install it with: pip install 'notifier-kafka[confluent]'")


def test_a_failure_that_no_module_explains_names_who_brought_the_plugin() -> None:
    entry = metadata.EntryPoint(
        "kafka", "notifier_kafka_drivers.kafka.driver:NoDriver", "notifier_kafka.drivers"
    )
    with pytest.raises(AttributeError) as caught:
        entry.load()
    assert plugins.describe_failure(entry, caught.value) == (
        f"{entry.value} of notifier-kafka does not load: {caught.value}; reinstall or upgrade notifier-kafka"
    )


@pytest.mark.parametrize(
    ("value", "error", "advice"),
    [
        (
            "package:Thing [speed]",
            ModuleNotFoundError("No module named 'x'", name="x.y"),
            "its distribution[speed]",
        ),
        ("package:Thing", ModuleNotFoundError("No module named 'x'", name="x.y"), "pip install 'x'"),
        (
            "package:Thing",
            AttributeError("no Thing"),
            "Thing of its distribution does not load: no Thing; reinstall or upgrade its distribution",
        ),
        # A module that is there and lacks a name: another version of what brings it.
        ("package:Thing", ImportError("cannot import name 'y'", name="x"), "; reinstall or upgrade its dist"),
    ],
)
def test_a_failure_says_what_to_install(value: str, error: Exception, advice: str) -> None:
    entry = metadata.EntryPoint("thing", value, "some.namespace")
    assert advice in plugins.describe_failure(entry, error)


def test_a_missing_plugin_is_raised_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DriverNotFound):
        plugins.load("notifier_kafka.channels", "mesagingv2")

    assert caplog.text == ""


@pytest.mark.parametrize("other", ["json:dumps", "json:loads"])
def test_two_distributions_may_bring_one_name_only_for_the_same_object(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    # stevedore reads a namespace once in a process.
    namespace = f"plugins.under.test.{other[5:]}"
    for name, value in (("first", "json:loads"), ("second", other)):
        metadata_directory = tmp_path / f"{name}-1.0.dist-info"
        metadata_directory.mkdir()
        (metadata_directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata_directory / "entry_points.txt").write_text(f"[{namespace}]\nreader = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)

    if other == "json:loads":
        assert plugins.load(namespace, "reader") is json.loads
    else:
        with pytest.raises(DriverLoadFailure, match="several distributions bring it: json:dumps, json"):
            plugins.load(namespace, "reader")
