"""Loading what other distributions bring."""

from importlib import metadata

import pytest

from notifier_kafka import plugins
from notifier_kafka.channels import messaging
from notifier_kafka.errors import DriverNotFound


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
            "package:Thing of its distribution does not load: no Thing",
        ),
    ],
)
def test_a_failure_says_what_to_install(value: str, error: Exception, advice: str) -> None:
    entry = metadata.EntryPoint("thing", value, "some.namespace")
    assert advice in plugins.describe_failure(entry, error)
