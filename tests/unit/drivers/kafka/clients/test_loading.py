"""What a notifier does when it is made, so that no call of it has to wait for that."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from oslo_config import cfg
from notifier_kafka.publishing import notifier, transport
conf = cfg.ConfigOpts()
conf([], project="test", default_config_files=[], default_config_dirs=[])
if sys.argv[4:]:
    sys.modules[sys.argv[2]] = None
bus = transport.get_notification_transport(conf, f"kafka://127.0.0.1:1/?client={sys.argv[1]}")
before = sys.argv[2] in sys.modules
notifier.Notifier(bus, "host1", driver=sys.argv[3])
print(before, sys.modules.get(sys.argv[2]) is not None, "multiprocessing.util" in sys.modules)
# Beside them there may be one that asks why no broker answers.
print([each.name for each in threading.enumerate() if each.name.startswith("notifier-kafka")])
"""
BUS = "messagingv2"
CLIENTS = [("confluent-kafka", "confluent_kafka"), ("kafka-python", "kafka")]


@pytest.mark.parametrize(("client", "module"), CLIENTS)
def test_a_notifier_loads_the_library_before_its_first_call(client: str, module: str) -> None:
    assert said(client, module, BUS)[0] == "False True True"


def test_a_notifier_starts_the_producer_before_its_first_call() -> None:
    assert said(*CLIENTS[0], BUS)[1] == "['notifier-kafka-reports']"


@pytest.mark.parametrize(("client", "module"), CLIENTS)
@pytest.mark.parametrize("channel", ["log", "noop", "test"])
def test_a_notifier_that_publishes_nothing_opens_nothing(client: str, module: str, channel: str) -> None:
    assert said(client, module, channel) == ["False False False", "[]"]


@pytest.mark.parametrize(("client", "module"), CLIENTS)
def test_a_library_that_is_not_there_is_the_first_call_s_error(client: str, module: str) -> None:
    assert said(client, module, BUS, "missing")[0] == "True False False"


def said(*arguments: str) -> list[str]:
    return subprocess.check_output([sys.executable, "-c", PROGRAM, *arguments], text=True).splitlines()
