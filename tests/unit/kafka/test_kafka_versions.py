"""Versions of a client library that forget their brokers are named when they are loaded."""

import configparser
import pathlib

import confluent_kafka
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from notifier_kafka_drivers.kafka.clients.confluent import FORGETFUL, Confluent

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.parametrize(("number", "warnings"), [(FORGETFUL - 1, 0), (FORGETFUL, 1)])
def test_a_forgetful_one_is_named(
    number: int, warnings: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(confluent_kafka, "libversion", lambda: ("of the test", number))
    Confluent({"bootstrap.servers": "127.0.0.1:1"})
    said = [message for message in caplog.messages if "may not come back" in message]
    assert len(said) == warnings
    assert all("librdkafka of the test" in message and "client = kafka-python" in message for message in said)


def test_the_extra_asks_for_none() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    (wanted,) = setup["options.extras_require"]["confluent"].split()
    assert Version("2.12.2") in Requirement(wanted).specifier
    assert Version("2.13.0") not in Requirement(wanted).specifier
    assert Version(confluent_kafka.version()) in Requirement(wanted).specifier
